package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"time"

	// docs: github.com/modelcontextprotocol/go-sdk · Everything from the address to the token and its renewal, by metadata document, with the check of `state`; 2026-07-28 · what is kept
	"context"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	ctx := context.Background()
	signIn := func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		back := askMember(args.URL)
		return &auth.AuthorizationResult{Code: back.Get("code"), State: back.Get("state"), Iss: back.Get("iss")}, nil
	}
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		// Where your metadata document is.
		ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: os.Getenv("CLIENT")},
		RedirectURL:                    os.Getenv("REDIRECT_URI"),
		AuthorizationCodeFetcher:       signIn,
	})
	if err != nil {
		panic(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "week-planner", Version: "1.0.0"}, nil)
	transport := &mcp.StreamableClientTransport{Endpoint: os.Getenv("ADDRESS"), OAuthHandler: handler}
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		panic(err)
	}
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		panic(err)
	}
	answer, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "list_events", Arguments: week()})
	if err != nil {
		panic(err)
	}
	// end
	found := struct {
		Tools  []string `json:"tools"`
		Titles []string `json:"titles"`
	}{}
	for _, tool := range tools.Tools {
		found.Tools = append(found.Tools, tool.Name)
	}
	var events struct{ Data []struct{ Title string } }
	if err := json.Unmarshal([]byte(answer.Content[0].(*mcp.TextContent).Text), &events); err != nil {
		panic(err)
	}
	for _, event := range events.Data {
		found.Titles = append(found.Titles, event.Title)
	}
	say(found)
	line()
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "list_events", Arguments: week()})
	say(map[string]any{"refused": fmt.Sprint(err)})
}

var input = bufio.NewScanner(os.Stdin)

func line() string {
	input.Scan()
	return input.Text()
}

// askMember prints where the member signs in, and returns what they came back with.
func askMember(address string) url.Values {
	fmt.Println(address)
	back, err := url.Parse(line())
	if err != nil {
		panic(err)
	}
	return back.Query()
}

func week() map[string]any {
	now := time.Now().UTC()
	return map[string]any{
		"sort": "starts_at", "starts_after": now.Format(time.RFC3339), "starts_before": now.AddDate(0, 0, 7).Format(time.RFC3339),
	}
}

func say(what any) {
	text, _ := json.Marshal(what)
	fmt.Println(string(text))
}
