// Package harness has the shared input and reports, one line each: the sign-in URL, the member's week, the changed bio, the text at the
// write limit with the week afterwards, and the error once its access has ended.
package harness

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

var input = bufio.NewScanner(os.Stdin)

// AskMember prints the sign-in URL, and returns the redirect's parameters.
func AskMember(address string) url.Values {
	fmt.Println(address)
	input.Scan()
	return Must(url.Parse(input.Text())).Query()
}

// Must returns a value, or ends the program.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Done prints the results, writes until the limit, reads again, and makes one call after access has ended.
func Done(tools []string, call func(name string, arguments map[string]any) (string, error)) {
	shown := func(name string, arguments map[string]any) string {
		text, err := call(name, arguments)
		if err != nil {
			return err.Error()
		}
		return text
	}
	week := func() string {
		now := time.Now().UTC()
		return shown("list_events", map[string]any{
			"sort": "starts_at", "starts_after": now.Format(time.RFC3339), "starts_before": now.AddDate(0, 0, 7).Format(time.RFC3339),
		})
	}
	write := func() string { return shown("update_profile", map[string]any{"bio": "Here for the hikes"}) }
	say(map[string]any{"tools": tools, "week": week()})
	written := write()
	say(map[string]any{"written": written})
	for strings.Contains(written, `"profile":`) {
		written = write()
	}
	say(map[string]any{"limited": written, "week": week()})
	for input.Scan() && input.Text() != "ended" {
	}
	say(map[string]any{"refused": week()})
}

func say(found map[string]any) {
	text, _ := json.Marshal(found)
	fmt.Println(string(text))
}
