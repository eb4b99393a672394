package publicuserapi

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"
)

// Error reports a call that the API rejected. Code is the reason; the server's /docs/errors explains how to fix each code.
type Error struct {
	Status int
	// A code of the catalog at /api/public/problems; "unknown" if another server responded, such as a proxy.
	Code string
	// The id of this call in the server's log.
	RequestID string
	// nil if another server responded.
	Problem *Problem
	// The wait after which the same call may succeed; nil if the server sent none.
	RetryAfter *time.Duration

	message string
}

func (e *Error) Error() string { return e.message }

func errorOf(response *http.Response, body []byte) *Error {
	failure := &Error{
		Status:     response.StatusCode,
		Code:       "unknown",
		RequestID:  response.Header.Get("X-Request-Id"),
		RetryAfter: retryAfter(response),
	}
	var problem Problem
	if json.Unmarshal(body, &problem) == nil && problem.Code != "" {
		failure.Problem, failure.Code = &problem, problem.Code
		failure.message = problem.Title + ": " + problem.Detail
		return failure
	}
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		kind = "nothing"
	}
	address := *response.Request.URL
	address.RawQuery = ""
	failure.message = fmt.Sprintf("HTTP %d with %s instead of JSON, from %s: a proxy responded, or baseURL is not the API's URL.",
		failure.Status, kind, &address)
	return failure
}

// Reads Retry-After in seconds (RFC 9110 section 10.2.3). Returns nil if the header is absent or a date.
func retryAfter(response *http.Response) *time.Duration {
	seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 20)
	if err != nil {
		return nil
	}
	wait := time.Duration(seconds) * time.Second
	return &wait
}
