package publicuserapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Maximum number of responses in the cache.
const cached = 100

// A response of the API.
type answer struct {
	body []byte
	etag string
}

// Optional is a field in a body of changes: [Set] to a value, [Clear]ed (null), or unchanged.
type Optional[T any] struct {
	isSet bool
	value *T
}

// Set changes a field to a value.
func Set[T any](value T) Optional[T] { return Optional[T]{true, &value} }

// Clear sets a field to null.
func Clear[T any]() Optional[T] { return Optional[T]{isSet: true} }

// IsZero tells encoding/json that the field is unchanged.
func (c Optional[T]) IsZero() bool { return !c.isSet }

// MarshalJSON writes the value, or null.
func (c Optional[T]) MarshalJSON() ([]byte, error) { return json.Marshal(c.value) }

func get[T any](ctx context.Context, client *Client, path string, query any) (*T, error) {
	value, _, err := getWithETag[T](ctx, client, path, query)
	return value, err
}

func getWithETag[T any](ctx context.Context, client *Client, path string, query any) (*T, string, error) {
	found, err := client.call(ctx, http.MethodGet, path, query, nil, "")
	if err != nil {
		return nil, "", err
	}
	value, err := decoded[T](found)
	return value, found.etag, err
}

func decoded[T any](found answer) (*T, error) {
	value := new(T)
	if err := json.Unmarshal(found.body, value); err != nil {
		return nil, fmt.Errorf("the response is not of type %T: %w", *value, err)
	}
	return value, nil
}

// Sends a call until it succeeds, is rejected permanently, or has no attempt left.
func (c *Client) call(ctx context.Context, method, path string, query, body any, ifMatch string) (answer, error) {
	values, err := valuesOf(query)
	if err != nil {
		return answer{}, err
	}
	address := c.base.JoinPath("/api/public", path)
	address.RawQuery = values.Encode()
	var content []byte
	if body != nil {
		if content, err = json.Marshal(body); err != nil {
			return answer{}, err
		}
	}
	name, value, err := c.credentials(ctx, "")
	if err != nil {
		return answer{}, err
	}
	renewed := false
	for tries := 0; ; tries++ {
		headers := http.Header{"Accept": {"application/json"}}
		headers.Set(name, value)
		if body != nil {
			headers.Set("Content-Type", "application/json")
		}
		if ifMatch != "" {
			headers.Set("If-Match", ifMatch)
		}
		response, received, err := c.send(ctx, method, address.String(), headers, content)
		if err != nil {
			if ctx.Err() != nil || tries >= c.retries {
				return answer{}, err
			}
			if err := wait(ctx, 250*time.Millisecond<<tries); err != nil {
				return answer{}, err
			}
			continue
		}
		if response == nil {
			return received, nil
		}
		refused := errorOf(response, received.body)
		if refused.Status == http.StatusUnauthorized && !renewed {
			_, other, err := c.credentials(ctx, value)
			if err != nil {
				return answer{}, err
			}
			if other == value {
				return answer{}, refused // a rejected credential is never sent again
			}
			value, renewed = other, true
			tries--
			continue
		}
		pause := time.Second << tries
		if refused.RetryAfter != nil {
			pause = *refused.RetryAfter
		}
		if !isForNow(method, refused.Status) || tries >= c.retries || pause > c.longestWait {
			return answer{}, refused
		}
		// Random, so that clients rejected together do not retry together.
		if err := wait(ctx, pause+time.Duration(rand.Float64()*float64(pause)/4)); err != nil {
			return answer{}, err
		}
	}
}

// Whether the server is temporarily overloaded, or a proxy rejected a request that only reads.
func isForNow(method string, status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return method == http.MethodGet
	}
	return false
}

// Sends a call once. The response is nil if the call succeeded.
func (c *Client) send(ctx context.Context, method, address string, headers http.Header, content []byte) (*http.Response, answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		return nil, answer{}, err
	}
	request.Header = headers
	before, isKnown := c.knownAs(address)
	if isKnown && method == http.MethodGet {
		headers.Set("If-None-Match", before.etag)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, answer{}, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotModified {
		return nil, before, nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, answer{}, err
	}
	received := answer{body, response.Header.Get("ETag")}
	if response.StatusCode < 200 || response.StatusCode > 299 || !json.Valid(body) {
		return response, received, nil
	}
	if method == http.MethodGet && received.etag != "" {
		c.keep(address, received)
	}
	return nil, received, nil
}

func (c *Client) knownAs(address string) (answer, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found, isKnown := c.known[address]
	return found, isKnown
}

func (c *Client) keep(address string, received answer) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if _, isKnown := c.known[address]; !isKnown {
		c.order = append(c.order, address)
	}
	c.known[address] = received
	if len(c.order) > cached {
		delete(c.known, c.order[0])
		c.order = c.order[1:]
	}
}

// Returns the query's parameters: joins lists by commas, and omits empty fields.
func valuesOf(query any) (url.Values, error) {
	if values, isValues := query.(url.Values); isValues || query == nil {
		return values, nil
	}
	text, err := json.Marshal(query)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	values := url.Values{}
	for name, value := range fields {
		if items, isList := value.([]any); isList {
			texts := make([]string, len(items))
			for i, item := range items {
				texts[i] = fmt.Sprint(item)
			}
			value = strings.Join(texts, ",")
		}
		values.Set(name, fmt.Sprint(value))
	}
	return values, nil
}

func wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}
