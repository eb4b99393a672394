package main

import (
	"os"

	"example.com/assistants/harness"

	// docs: github.com/modelcontextprotocol/go-sdk · Checks `state` · storing tokens
	"context"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	ctx := context.Background()
	signIn := func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		back := harness.AskMember(args.URL)
		return &auth.AuthorizationResult{Code: back.Get("code"), State: back.Get("state"), Iss: back.Get("iss")}, nil
	}
	handler := harness.Must(auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		// The URL of your metadata document.
		ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: os.Getenv("CLIENT")},
		RedirectURL:                    os.Getenv("REDIRECT_URI"),
		AuthorizationCodeFetcher:       signIn,
	}))
	client := mcp.NewClient(&mcp.Implementation{Name: "week-planner", Version: "1.0.0"}, nil)
	transport := &mcp.StreamableClientTransport{Endpoint: os.Getenv("ADDRESS"), OAuthHandler: handler}
	session := harness.Must(client.Connect(ctx, transport, nil))
	tools := harness.Must(session.ListTools(ctx, nil))
	call := func(name string, arguments map[string]any) (string, error) {
		answer, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
		if err != nil {
			return "", err
		}
		return answer.Content[0].(*mcp.TextContent).Text, nil
	}
	// end
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	harness.Done(names, call)
}
