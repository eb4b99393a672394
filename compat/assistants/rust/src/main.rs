use std::io::{stdin, BufRead};

use serde_json::json;

// docs: rmcp · Checks `state` · `new_allowing_private_addresses` for your own host
use rmcp::{
    ServiceExt,
    model::CallToolRequestParams,
    transport::{
        StreamableHttpClientTransport,
        auth::{AuthClient, AuthorizationManager, AuthorizationRequest, OAuthState},
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::var("ADDRESS")?;
    // For a server on your own machine; `new` for one on the internet.
    let mut state = OAuthState::Unauthorized(AuthorizationManager::new_allowing_private_addresses(&address).await?);
    let request = AuthorizationRequest::new(std::env::var("REDIRECT_URI")?)
        .with_initial_scope_selection()
        .with_scopes(std::env::var("SCOPE")?.split_whitespace()) // all scopes at once: this client never requests another scope
        .with_client_metadata_url(std::env::var("CLIENT")?); // the URL of your metadata document
    state.start_authorization(request).await?;
    state.handle_callback_url(&sign_in(&state.get_authorization_url().await?)).await?;
    let http = AuthClient::new(reqwest::Client::default(), state.into_authorization_manager().ok_or("no token")?);
    let config = StreamableHttpClientTransportConfig::with_uri(address);
    let client = ().serve(StreamableHttpClientTransport::with_client(http, config)).await?;
    let tools = client.list_all_tools().await?;
    // end
    let shown = async |tool: CallToolRequestParams| match client.call_tool(tool).await {
        Ok(result) => result.content[0].as_text().map_or("no text".to_string(), |text| text.text.clone()),
        Err(error) => error.to_string(),
    };
    let tools: Vec<String> = tools.iter().map(|tool| tool.name.to_string()).collect();
    println!("{}", json!({ "tools": tools, "week": shown(week()).await }));
    let mut written = shown(write()).await;
    println!("{}", json!({ "written": written }));
    while written.contains("\"profile\":") {
        written = shown(write()).await;
    }
    println!("{}", json!({ "limited": written, "week": shown(week()).await }));
    while line() != "ended" {}
    println!("{}", json!({ "refused": shown(week()).await }));
    Ok(())
}

fn week() -> CallToolRequestParams {
    let now = chrono::Utc::now();
    let arguments = json!({
        "sort": "starts_at",
        "starts_after": now.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        "starts_before": (now + chrono::Duration::days(7)).to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
    });
    CallToolRequestParams::new("list_events").with_arguments(arguments.as_object().unwrap().clone())
}

fn write() -> CallToolRequestParams {
    let arguments = json!({ "bio": "Here for the hikes" });
    CallToolRequestParams::new("update_profile").with_arguments(arguments.as_object().unwrap().clone())
}

fn line() -> String {
    let mut line = String::new();
    stdin().lock().read_line(&mut line).unwrap();
    line.trim().to_string()
}

/// Prints the sign-in URL, and returns the URL with which the member returned.
fn sign_in(address: &str) -> String {
    println!("{address}");
    line()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Err(error) = run().await {
        eprintln!("{error:?}");
        std::process::exit(1);
    }
}
