package main

import (
	"os"
	"strings"

	"example.com/assistants/harness"

	// docs: github.com/mark3labs/mcp-go · Tokens and renewal · scopes; PKCE and `state` by its helpers
	"context"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
)

func main() {
	ctx := context.Background()
	config := client.OAuthConfig{
		ClientID:                os.Getenv("CLIENT"), // the URL of your metadata document
		TokenEndpointAuthMethod: "none",
		RedirectURI:             os.Getenv("REDIRECT_URI"),
		Scopes:                  strings.Fields(os.Getenv("SCOPE")), // all scopes at once: this client never requests another scope
		TokenStore:              client.NewMemoryTokenStore(),
		PKCEEnabled:             true,
	}
	c := harness.Must(client.NewOAuthStreamableHttpClient(os.Getenv("ADDRESS"), config))
	begin := mcp.InitializeRequest{}
	begin.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	begin.Params.ClientInfo = mcp.Implementation{Name: "week-planner", Version: "1.0.0"}
	_, err := c.Initialize(ctx, begin)
	if handler := client.GetOAuthHandler(err); handler != nil {
		verifier := harness.Must(client.GenerateCodeVerifier())
		state := harness.Must(client.GenerateState())
		url := harness.Must(handler.GetAuthorizationURL(ctx, state, client.GenerateCodeChallenge(verifier)))
		back := harness.AskMember(url)
		if err = handler.ProcessAuthorizationResponse(ctx, back.Get("code"), back.Get("state"), verifier); err == nil {
			_, err = c.Initialize(ctx, begin)
		}
	}
	if err != nil {
		panic(err)
	}
	tools := harness.Must(c.ListTools(ctx, mcp.ListToolsRequest{}))
	call := func(name string, arguments map[string]any) (string, error) {
		answer, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: name, Arguments: arguments}})
		if err != nil {
			return "", err
		}
		return answer.Content[0].(mcp.TextContent).Text, nil
	}
	// end
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	harness.Done(names, call)
}
