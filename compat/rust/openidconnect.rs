//! Signs a member in with openidconnect, verifies the ID token, and calls the API.
//!
// auth: none client_secret_basic client_secret_post
use std::env::var;
use std::io::stdin;

// docs: openidconnect · Discovery, PKCE and ID tokens, over reqwest, ureq or curl · checking `state`
use openidconnect::core::*;
use openidconnect::*;
use openidconnect::reqwest::{blocking::Client, redirect::Policy};

fn main() {
    let issuer = var("ISSUER").unwrap();
    let http = Client::builder().redirect(Policy::none()).build().unwrap();
    let found = CoreProviderMetadata::discover(&IssuerUrl::new(issuer.clone()).unwrap(), &http).unwrap();
    let client = CoreClient::from_provider_metadata(
        found,
        ClientId::new(var("CLIENT_ID").unwrap()),
        secret(), // None for a public client
    )
    .set_redirect_uri(RedirectUrl::new(var("REDIRECT_URI").unwrap()).unwrap())
    .set_auth_type(auth_type()); // BasicAuth, which is the default, or RequestBody
    let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
    let (url, state, nonce) = client
        .authorize_url(
            CoreAuthenticationFlow::AuthorizationCode,
            CsrfToken::new_random,
            Nonce::new_random,
        )
        .add_scopes(["profile:read", "events:read"].map(|scope| Scope::new(scope.to_string())))
        .set_pkce_challenge(challenge)
        .url();
    let back = sign_in(&url);
    assert_eq!(parameter(&back, "state"), *state.secret());
    let tokens = client
        .exchange_code(AuthorizationCode::new(parameter(&back, "code")))
        .unwrap()
        .set_pkce_verifier(verifier)
        .request(&http)
        .unwrap();
    let id_token = tokens.extra_fields().id_token().unwrap();
    id_token.claims(&client.id_token_verifier(), &nonce).unwrap();
    let renewed = client
        .exchange_refresh_token(tokens.refresh_token().unwrap())
        .unwrap()
        .request(&http)
        .unwrap();
    // end
    let me = |token: &AccessToken| -> String {
        let asked = http.get(format!("{issuer}/api/public/me"));
        let said = asked.bearer_auth(token.secret()).send().unwrap().text().unwrap();
        said.split("\"username\":\"").nth(1).unwrap().split('"').next().unwrap().to_string()
    };
    let [username, again] = [me(tokens.access_token()), me(renewed.access_token())];
    println!("{{\"username\":\"{username}\",\"again\":\"{again}\"}}");
}

fn secret() -> Option<ClientSecret> {
    var("CLIENT_SECRET").ok().filter(|secret| !secret.is_empty()).map(ClientSecret::new)
}

fn auth_type() -> AuthType {
    match var("AUTH").unwrap().as_str() {
        "client_secret_basic" => AuthType::BasicAuth,
        _ => AuthType::RequestBody,
    }
}

/// Prints the sign-in URL, and returns the URL with which the member returned.
fn sign_in(address: &url::Url) -> url::Url {
    println!("{address}");
    let mut line = String::new();
    stdin().read_line(&mut line).unwrap();
    url::Url::parse(line.trim()).unwrap()
}

fn parameter(address: &url::Url, name: &str) -> String {
    address.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned()
}
