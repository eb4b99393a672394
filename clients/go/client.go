// Package publicuserapi calls the Public User API: typed calls, lists as iterators, sign-in with PKCE, webhooks.
package publicuserapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Credentials returns a request's header and its value. If the API rejected a value, the client calls the function with that value, and
// sends a new value in a second attempt.
type Credentials func(ctx context.Context, refused string) (header, value string, err error)

// APIKey is the key of a partner's backend.
func APIKey(key string) Credentials {
	return func(context.Context, string) (string, string, error) { return "X-API-Key", key, nil }
}

// Token uses an access token that is managed elsewhere: the function returns the current token, or a new token if the API rejected the
// current one. The function may always return the same token.
func Token(token func(ctx context.Context, refused string) (string, error)) Credentials {
	return func(ctx context.Context, refused string) (string, string, error) {
		value, err := token(ctx, strings.TrimPrefix(refused, "Bearer "))
		return "Authorization", "Bearer " + value, err
	}
}

// Client calls the API for the member whose credentials are used. Every method returns an [*Error] if the API rejects the request. Safe for
// concurrent use.
type Client struct {
	base        *url.URL
	credentials Credentials
	http        *http.Client
	retries     int
	longestWait time.Duration
	timeout     time.Duration

	mutex sync.Mutex
	known map[string]answer
	order []string
}

// Option changes a setting of a [Client].
type Option func(*Client)

// WithHTTPClient sends the calls with your HTTP client, its proxies and certificates. It does not follow redirects, which would send the
// credentials elsewhere.
func WithHTTPClient(client *http.Client) Option { return func(c *Client) { c.http = client } }

// WithRetries sets the maximum number of retries: after 429 or 503, if a call did not arrive, and after 502 or 504 if it only reads.
// Default 2.
func WithRetries(retries int) Option { return func(c *Client) { c.retries = retries } }

// WithLongestWait sets the longest wait between two attempts: if a longer wait is necessary, the call fails with the response. Default 10
// seconds.
func WithLongestWait(wait time.Duration) Option { return func(c *Client) { c.longestWait = wait } }

// WithTimeout sets the timeout of one attempt. Default 30 seconds.
func WithTimeout(timeout time.Duration) Option { return func(c *Client) { c.timeout = timeout } }

// New creates a client for the server at baseURL, a URL without a path.
func New(baseURL string, credentials Credentials, options ...Option) (*Client, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return nil, err
	}
	if base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("baseURL is %q, which is not an http or https URL", baseURL)
	}
	client := &Client{
		base:        base,
		credentials: credentials,
		http:        http.DefaultClient,
		retries:     2,
		longestWait: 10 * time.Second,
		timeout:     30 * time.Second,
		known:       map[string]answer{},
	}
	for _, option := range options {
		option(client)
	}
	direct := *client.http
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.http = &direct
	return client, nil
}

// Me returns the basic profile. It needs the scope profile:read.
func (c *Client) Me(ctx context.Context) (*Me, error) { return get[Me](ctx, c, "/me", nil) }

// Profile returns the profile with its counts. It needs the scope profile:read.
func (c *Client) Profile(ctx context.Context) (*Profile, error) {
	return get[Profile](ctx, c, "/profile", nil)
}

// ProfileWithETag returns the profile and its ETag. With the ETag, [Client.UpdateProfile] fails if the profile has changed in the meantime.
func (c *Client) ProfileWithETag(ctx context.Context) (*Profile, string, error) {
	return getWithETag[Profile](ctx, c, "/profile", nil)
}

// UpdateProfile changes the fields that are set, all or none. With an ETag as ifMatch, it fails with the code
// precondition_failed if the profile has changed since; with "", it does not check this. It needs the scope profile:write.
func (c *Client) UpdateProfile(ctx context.Context, changes ProfileChanges, ifMatch string) (*ChangedProfile, error) {
	found, err := c.call(ctx, http.MethodPut, "/profile", nil, changes, ifMatch)
	if err != nil {
		return nil, err
	}
	updated, err := decoded[ProfileUpdated](found)
	if err != nil {
		return nil, err
	}
	return &updated.Profile, nil
}

// Event needs the scope events:read, as [Client.Events] does.
func (c *Client) Event(ctx context.Context, id int64) (*EventDetail, error) {
	return get[EventDetail](ctx, c, fmt.Sprintf("/events/%d", id), nil)
}

// PinnedAchievements returns the pinned achievements, at most six, in the member's order.
func (c *Client) PinnedAchievements(ctx context.Context) ([]Achievement, error) {
	page, err := get[AchievementPage](ctx, c, "/achievements/pinned", nil)
	if err != nil {
		return nil, err
	}
	return page.Data, nil
}

// Achievement returns one achievement, with its criteria.
func (c *Client) Achievement(ctx context.Context, id int64) (*AchievementDetail, error) {
	return get[AchievementDetail](ctx, c, fmt.Sprintf("/achievements/%d", id), nil)
}

// AchievementStatistics counts the achievements by category and rarity.
func (c *Client) AchievementStatistics(ctx context.Context) (*AchievementStatistics, error) {
	return get[AchievementStatistics](ctx, c, "/achievements/stats", nil)
}

// Changes lists the records to read again or delete, to keep a copy of the member's data up to date. Without a cursor, it returns the first
// cursor. After the code cursor_expired, read everything again.
func (c *Client) Changes(ctx context.Context, query SyncQuery) (*Changes, error) {
	return get[Changes](ctx, c, "/sync", query)
}

// Credential returns the credential's kind and its permitted calls.
func (c *Client) Credential(ctx context.Context) (*Credential, error) {
	return get[Credential](ctx, c, "/credential", nil)
}
