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

// ErrWebhook is the error for a forged or old message: respond with 401.
var ErrWebhook = errors.New("not a genuine webhook")

// WebhookTolerance is the maximum age of a message.
const WebhookTolerance = 5 * time.Minute

// WebhookMessage names a record to read again or delete, or a change of access.
type WebhookMessage struct {
	// Such as events.updated or access.ended; webhook.test for an admin's test message, whose Data is empty.
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
		// For access.… and credential.…: the scopes of the app or key.
		Scopes []string `json:"scopes"`
		// For the same types: the end of access, such as 2026-05-01 18:00:00 (UTC); nil if there is none.
		AccessEndsAt *string `json:"access_ends_at"`
		// For the same types: member, app, platform, expired or unused; nil if access has not ended.
		Reason *string `json:"reason"`
	} `json:"data"`
}

// VerifyWebhook reads a webhook after checking its signature and age (Standard Webhooks). The body must be unchanged. Pass the secrets from
// the registration (whsec_…); both during a rotation.
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
			return nil, errors.New("a secret is malformed: it must be whsec_ and base64")
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
