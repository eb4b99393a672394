package publicuserapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrWebhook is the error of a message that is not genuine, or too old: answer it with 401.
var ErrWebhook = errors.New("not a genuine webhook")

// WebhookTolerance is how old a message may be.
const WebhookTolerance = 5 * time.Minute

// WebhookMessage names a record to read again, or to delete; or what became of the access.
type WebhookMessage struct {
	// Such as events.updated or access.ended; webhook.test for one that an admin sent, whose Data is empty.
	Type string `json:"type"`
	// When the change happened.
	Timestamp time.Time `json:"timestamp"`
	Data      struct {
		// nil in a message to the platform about a record without a member.
		MemberID *int64 `json:"member_id"`
		Resource string `json:"resource"`
		ID       int64  `json:"id"`
		// updated or removed.
		Kind string `json:"kind"`
		// Of access.… and credential.…: what the app or key may do.
		Scopes []string `json:"scopes"`
		// Of the same: the end, as in 2026-05-01 18:00:00 (UTC); nil if there is none.
		AccessEndsAt *string `json:"access_ends_at"`
		// Of the same: member, app, platform, expired or unused; nil if it did not end.
		Reason *string `json:"reason"`
	} `json:"data"`
}

// VerifyWebhook reads a webhook after checking its signature and age (Standard Webhooks). The body is the bytes that arrived. The
// secrets are as shown when the receiver was registered (whsec_…); both while one replaces the other.
func VerifyWebhook(header http.Header, body []byte, secrets ...string) (*WebhookMessage, error) {
	id, timestamp := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" {
		return nil, fmt.Errorf("%w: its headers are missing", ErrWebhook)
	}
	if time.Since(time.Unix(seconds, 0)).Abs() > WebhookTolerance {
		return nil, fmt.Errorf("%w: it is too old, or a clock is wrong", ErrWebhook)
	}
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) == 0 {
			return nil, errors.New("a secret is not as it was shown: whsec_ and base64")
		}
		code := hmac.New(sha256.New, key)
		fmt.Fprintf(code, "%s.%s.%s", id, timestamp, body)
		expected := code.Sum(nil)
		for signature := range strings.SplitSeq(header.Get("Webhook-Signature"), " ") {
			given, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signature, "v1,"))
			if err == nil && strings.HasPrefix(signature, "v1,") && hmac.Equal(given, expected) {
				message := new(WebhookMessage)
				return message, json.Unmarshal(body, message)
			}
		}
	}
	return nil, fmt.Errorf("%w: no signature matches", ErrWebhook)
}
