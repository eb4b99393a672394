// Signs a member in with golang.org/x/oauth2, and calls the API.
//
// auth: none client_secret_basic client_secret_post
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	// docs: golang.org/x/oauth2 · PKCE, and automatic renewal · no discovery; checking `state`
	"golang.org/x/oauth2"
)

func main() {
	issuer, ctx := os.Getenv("ISSUER"), context.Background()
	style := oauth2.AuthStyleInParams
	if os.Getenv("AUTH") == "client_secret_basic" {
		style = oauth2.AuthStyleInHeader
	}
	config := &oauth2.Config{
		ClientID:     os.Getenv("CLIENT_ID"),
		ClientSecret: os.Getenv("CLIENT_SECRET"), // empty for a public client
		RedirectURL:  os.Getenv("REDIRECT_URI"),
		Scopes:       []string{"profile:read", "events:read"},
		Endpoint: oauth2.Endpoint{
			AuthURL:   issuer + "/oauth/authorize",
			TokenURL:  issuer + "/oauth/token",
			AuthStyle: style, // for a public client: oauth2.AuthStyleInParams
		},
	}
	verifier, state := oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	back := signIn(config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)))
	if back.Query().Get("state") != state {
		panic("not the sign-in that was begun here")
	}
	tokens, err := config.Exchange(ctx, back.Query().Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		panic(err)
	}
	username := me(config.Client(ctx, tokens), issuer) // renews the token when it has expired
	// end
	tokens.Expiry = time.Now().Add(-time.Minute)
	fmt.Printf("{\"username\":%q,\"again\":%q}\n", username, me(config.Client(ctx, tokens), issuer))
}

// signIn prints the sign-in URL, and returns the URL with which the member returned.
func signIn(address string) *url.URL {
	fmt.Println(address)
	line, _, _ := bufio.NewReader(os.Stdin).ReadLine()
	back, err := url.Parse(string(line))
	if err != nil {
		panic(err)
	}
	return back
}

func me(client *http.Client, issuer string) string {
	response, err := client.Get(issuer + "/api/public/me")
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	var member struct{ Username string }
	if err := json.NewDecoder(response.Body).Decode(&member); err != nil {
		panic(err)
	}
	return member.Username
}
