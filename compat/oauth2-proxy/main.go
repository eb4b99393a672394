// Runs oauth2-proxy in front of a tiny upstream, and signs a member in through it.
//
// auth: client_secret_basic
package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

var issuer = os.Getenv("ISSUER")

func main() {
	// The upstream returns the API's profile of the token's member.
	upstream := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		token := request.Header.Get("X-Forwarded-Access-Token")
		json.NewEncoder(response).Encode(map[string]string{"username": me(token), "token": token})
	}))
	address := freeAddress()
	arguments := []string{
		// docs: github.com/oauth2-proxy/oauth2-proxy · A proxy that signs members in for a site: discovery, PKCE, automatic renewal · nothing
		"--provider=oidc",
		"--oidc-issuer-url=" + issuer,
		"--client-id=" + os.Getenv("CLIENT_ID"),
		"--client-secret=" + os.Getenv("CLIENT_SECRET"),
		"--redirect-url=https://app.example/oauth2/callback",
		"--scope=openid profile profile:read events:read",
		"--code-challenge-method=S256",
		"--oidc-email-claim=preferred_username", // this server discloses no email address
		"--email-domain=*",
		"--cookie-refresh=1s",        // in production less than the 10 minutes that a token lives
		"--pass-access-token=true",   // to the site, in X-Forwarded-Access-Token
		"--upstream=" + upstream.URL, // the site
		// end
		"--http-address=" + address,
		"--cookie-secret=" + rand.Text()[:16],
		"--cookie-secure=false", // over http, only in this test
		"--skip-provider-button=true",
	}
	program, err := os.Executable()
	check(err)
	proxy := exec.Command(filepath.Join(filepath.Dir(program), "oauth2-proxy"), arguments...)
	proxy.Stdout, proxy.Stderr = os.Stderr, os.Stderr
	check(proxy.Start())
	defer proxy.Process.Kill()
	site := "http://" + address
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if response, err := http.Get(site + "/ping"); err == nil && response.StatusCode == 200 {
			break
		} else if time.Now().After(deadline) {
			panic("oauth2-proxy does not start")
		}
	}

	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	begun, err := browser.Get(site + "/")
	check(err)
	back := signIn(begun.Header.Get("Location"))
	_, err = browser.Get(site + back.RequestURI())
	check(err)
	first := read(browser, site)
	again := first
	for deadline := time.Now().Add(30 * time.Second); again["token"] == first["token"]; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			panic("the token was not renewed")
		}
		again = read(browser, site)
	}
	fmt.Printf("{\"username\":%q,\"again\":%q}\n", first["username"], again["username"])
}

// read opens the site through the proxy, signed in.
func read(browser *http.Client, site string) map[string]string {
	response, err := browser.Get(site + "/")
	check(err)
	defer response.Body.Close()
	var said map[string]string
	check(json.NewDecoder(response.Body).Decode(&said))
	return said
}

func me(token string) string {
	request, _ := http.NewRequest("GET", issuer+"/api/public/me", nil)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	check(err)
	defer response.Body.Close()
	var member struct{ Username string }
	check(json.NewDecoder(response.Body).Decode(&member))
	return member.Username
}

// signIn prints the sign-in URL, and returns the URL with which the member returned.
func signIn(address string) *url.URL {
	fmt.Println(address)
	line, _, _ := bufio.NewReader(os.Stdin).ReadLine()
	back, err := url.Parse(string(line))
	check(err)
	return back
}

func freeAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	defer listener.Close()
	return listener.Addr().String()
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
