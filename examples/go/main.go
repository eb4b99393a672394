// Prints the member's upcoming events with the standard library only. It reads all pages, waits as the server asks, and prints the
// server's error if a request fails.
//
//	API_KEY=… go run examples/go/main.go
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"time"
)

const attempts = 5

type event struct {
	ID            int64   `json:"id"`
	Title         string  `json:"title"`
	StartsAtLocal string  `json:"starts_at_local"`
	Timezone      *string `json:"timezone"`
}

type page struct {
	Data       []event `json:"data"`
	Pagination struct {
		NextCursor *string `json:"next_cursor"`
	} `json:"pagination"`
}

// problem is the API's error response (RFC 9457).
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (p problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail) }

type client struct{ address, key string }

// get reads one page. After 429 and 503, it retries when Retry-After has passed.
func (c client) get(ctx context.Context, path string, query url.Values) (page, error) {
	for attempt := 1; ; attempt++ {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.address+path+"?"+query.Encode(), nil)
		if err != nil {
			return page{}, err
		}
		request.Header.Set("X-API-Key", c.key)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return page{}, err
		}
		if response.StatusCode == http.StatusOK {
			var found page
			err = json.NewDecoder(response.Body).Decode(&found)
			response.Body.Close()
			return found, err
		}
		refused := problem{Status: response.StatusCode}
		_ = json.NewDecoder(response.Body).Decode(&refused)
		response.Body.Close()
		busy := response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable
		if !busy || attempt == attempts {
			return page{}, refused
		}
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		select {
		case <-ctx.Done():
			return page{}, ctx.Err()
		case <-time.After(time.Duration(max(seconds, 1)) * time.Second):
		}
	}
}

// events requests a page when it is needed.
func (c client) events(ctx context.Context, query url.Values) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		for {
			found, err := c.get(ctx, "/api/public/events", query)
			if err != nil {
				yield(event{}, err)
				return
			}
			for _, one := range found.Data {
				if !yield(one, nil) {
					return
				}
			}
			if found.Pagination.NextCursor == nil {
				return
			}
			query.Set("cursor", *found.Pagination.NextCursor)
		}
	}
}

func main() {
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt)
	defer end()
	api := client{cmp.Or(os.Getenv("API_URL"), "http://localhost:3000"), os.Getenv("API_KEY")}
	query := url.Values{"time_filter": {"upcoming"}, "sort": {"starts_at"}, "limit": {"100"}}
	for one, err := range api.events(ctx, query) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		zone := "UTC"
		if one.Timezone != nil {
			zone = *one.Timezone
		}
		fmt.Println(one.StartsAtLocal, zone, one.Title)
	}
}
