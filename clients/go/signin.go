package publicuserapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// The client refreshes a token this long before it expires.
const early = 30 * time.Second

// SignIn signs members in with an authorization code and PKCE (RFC 7636, RFC 9700), for a client without keys.
// Safe for concurrent use.
type SignIn struct {
	// Issuer is the URL of the server, without a path.
	Issuer   string
	ClientID string
	// RedirectURI must exactly match a registered redirect URI.
	RedirectURI string
	// Scope lists the requested scopes, separated by spaces.
	Scope string
	// HTTPClient sends the requests; nil is [http.DefaultClient].
	HTTPClient *http.Client

	mutex    sync.Mutex
	metadata *metadata
}

// Pending is a started sign-in: keep it in the member's session until they return.
type Pending struct {
	State    string `json:"state"`
	Verifier string `json:"verifier"`
	Issuer   string `json:"issuer"`
}

// Tokens are a member's granted tokens. Store them like passwords.
type Tokens struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token,omitempty"`
	// The granted scope, which may be less than requested.
	Scope     string    `json:"scope"`
	ExpiresAt time.Time `json:"expires_at"`
	// When the app's access ends; zero if it has no end.
	AccessEndsAt time.Time `json:"access_ends_at,omitzero"`
}

// SignInError is an error from the authorization server (RFC 6749 sections 4.1.2.1 and 5.2), or a response that belongs to no sign-in of
// this client.
type SignInError struct {
	// Code of the RFC, such as access_denied; state_mismatch if the response belongs to no sign-in of this client; signed_out if the member
	// must sign in again.
	Code        string
	Description string
}

func (e *SignInError) Error() string { return strings.TrimSuffix(e.Code+": "+e.Description, ": ") }

type metadata struct {
	Issuer                string `json:"issuer"`
	AuthorizationEndpoint string `json:"authorization_endpoint"`
	TokenEndpoint         string `json:"token_endpoint"`
	RevocationEndpoint    string `json:"revocation_endpoint"`
}

// Begin returns the sign-in URL for the member and the input for [SignIn.Finish]. The prompt is "", or "consent" to ask again, also for
// denied scopes.
func (s *SignIn) Begin(ctx context.Context, prompt string) (string, *Pending, error) {
	server, err := s.discover(ctx)
	if err != nil {
		return "", nil, err
	}
	pending := &Pending{State: rand.Text(), Verifier: rand.Text() + rand.Text(), Issuer: server.Issuer}
	digest := sha256.Sum256([]byte(pending.Verifier))
	query := url.Values{
		"client_id":             {s.ClientID},
		"response_type":         {"code"},
		"redirect_uri":          {s.RedirectURI},
		"scope":                 {s.Scope},
		"state":                 {pending.State},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(digest[:])},
		"code_challenge_method": {"S256"},
	}
	if prompt != "" {
		query.Set("prompt", prompt)
	}
	return server.AuthorizationEndpoint + "?" + query.Encode(), pending, nil
}

// Finish exchanges the code in the query of the redirect URI. Finish a pending sign-in only once: first remove it from the session.
func (s *SignIn) Finish(ctx context.Context, query url.Values, pending *Pending) (*Tokens, error) {
	// RFC 9207: rejects another server's response.
	if pending == nil || query.Get("state") != pending.State || query.Get("iss") != pending.Issuer {
		return nil, &SignInError{"state_mismatch", "This response does not belong to a sign-in that started here."}
	}
	if code := query.Get("error"); code != "" {
		return nil, &SignInError{code, query.Get("error_description")}
	}
	return s.ask(ctx, url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {query.Get("code")},
		"code_verifier": {pending.Verifier},
		"redirect_uri":  {s.RedirectURI},
	})
}

// Refresh returns new tokens; the old ones no longer work. After the code signed_out, the member must sign in again; the description states
// when and why access ended.
func (s *SignIn) Refresh(ctx context.Context, tokens *Tokens) (*Tokens, error) {
	if tokens.RefreshToken == "" {
		return nil, &SignInError{"signed_out", "The sign-in has expired."}
	}
	renewed, err := s.ask(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens.RefreshToken}})
	if refused, isRefused := err.(*SignInError); isRefused && refused.Code == "invalid_grant" {
		return nil, &SignInError{"signed_out", refused.Description}
	}
	if err == nil && renewed.RefreshToken == "" {
		renewed.RefreshToken = tokens.RefreshToken
	}
	return renewed, err
}

// Revoke ends the access at the server (RFC 7009).
func (s *SignIn) Revoke(ctx context.Context, tokens *Tokens) error {
	server, err := s.discover(ctx)
	if err != nil {
		return err
	}
	token := tokens.RefreshToken
	if token == "" {
		token = tokens.AccessToken
	}
	return s.send(ctx, http.MethodPost, server.RevocationEndpoint, url.Values{"token": {token}}, nil)
}

// Credentials returns a member's credentials for a [Client]. It refreshes the tokens before they expire, once for all waiting calls;
// renewed stores the new tokens before the client uses them.
func (s *SignIn) Credentials(tokens *Tokens, renewed func(context.Context, *Tokens) error) Credentials {
	var mutex sync.Mutex
	return Token(func(ctx context.Context, refused string) (string, error) {
		mutex.Lock()
		defer mutex.Unlock()
		if tokens.AccessToken != refused && time.Until(tokens.ExpiresAt) > early {
			return tokens.AccessToken, nil
		}
		others, err := s.Refresh(ctx, tokens)
		if err != nil {
			return "", err
		}
		tokens = others
		return tokens.AccessToken, renewed(ctx, tokens)
	})
}

func (s *SignIn) ask(ctx context.Context, parameters url.Values) (*Tokens, error) {
	server, err := s.discover(ctx)
	if err != nil {
		return nil, err
	}
	var granted struct {
		Tokens
		ExpiresIn             int64 `json:"expires_in"`
		RefreshTokenExpiresIn int64 `json:"refresh_token_expires_in"`
	}
	if err := s.send(ctx, http.MethodPost, server.TokenEndpoint, parameters, &granted); err != nil {
		return nil, err
	}
	if granted.AccessToken == "" {
		return nil, &SignInError{"no_token", server.TokenEndpoint + " did not respond as an authorization server."}
	}
	now := time.Now()
	granted.ExpiresAt = now.Add(time.Duration(granted.ExpiresIn) * time.Second)
	if granted.RefreshTokenExpiresIn > 0 {
		granted.AccessEndsAt = now.Add(time.Duration(granted.RefreshTokenExpiresIn) * time.Second)
	}
	return &granted.Tokens, nil
}

// Reads the server's metadata (RFC 8414) once, and again after a failure.
func (s *SignIn) discover(ctx context.Context) (*metadata, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.metadata != nil {
		return s.metadata, nil
	}
	address, err := url.JoinPath(s.Issuer, "/.well-known/oauth-authorization-server")
	if err != nil {
		return nil, err
	}
	found := new(metadata)
	if err := s.send(ctx, http.MethodGet, address, nil, found); err != nil {
		return nil, err
	}
	s.metadata = found
	return found, nil
}

// Sends a form, or no body for nil. Decodes the JSON response into a value, or ignores it for nil.
func (s *SignIn) send(ctx context.Context, method, address string, form url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var content io.Reader
	if form != nil {
		form.Set("client_id", s.ClientID)
		content = strings.NewReader(form.Encode())
	}
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return err
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := s.HTTPClient
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode == http.StatusOK {
		if into == nil || json.Unmarshal(body, into) == nil {
			return nil
		}
		return &SignInError{"no_json", address + " did not respond with JSON: is Issuer the URL of the API?"}
	}
	var refused struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &refused) == nil && refused.Error != "" {
		return &SignInError{refused.Error, refused.Description}
	}
	return &SignInError{fmt.Sprintf("http_%d", response.StatusCode), address + " did not respond as an authorization server."}
}
