// The yardstick in a third language: axum and tokio-postgres, the statements of the hand-written Node peer, structs to JSON.
mod answers;

use std::{
    collections::HashMap,
    env,
    sync::atomic::{AtomicUsize, Ordering},
    sync::Arc,
};

use axum::{
    extract::RawQuery,
    http::{header, HeaderMap, StatusCode},
    response::IntoResponse,
    routing::get,
    Router,
};
use base64::{engine::general_purpose::STANDARD, Engine};
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use tokio_postgres::{Client, NoTls, Row, Statement};

/// Each connection sends the statements that arrive during a write together: more connections only cost PostgreSQL processes.
const CONNECTIONS: usize = 4;
const JSON: &str = "application/json; charset=utf-8";

pub type Sha256Mac = Hmac<Sha256>;

/// Makes a response from a statement's rows; `None` if the key is invalid, since there is no row.
type Answer = fn(&[Row], &Keys) -> Option<Vec<u8>>;

pub struct Keys {
    pepper: Sha256Mac,
    pub cursor: Sha256Mac,
}

struct Connection {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

struct Server {
    connections: Vec<Connection>,
    next: AtomicUsize,
    keys: Keys,
}

#[tokio::main]
async fn main() {
    let texts: HashMap<String, String> = serde_json::from_str(&setting("STATEMENTS")).expect("STATEMENTS");
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let (client, connection) = tokio_postgres::connect(&setting("DATABASE_URL"), NoTls).await.expect("PostgreSQL");
        tokio::spawn(connection);
        let mut statements = HashMap::new();
        for name in ["profile", "events", "connections", "achievements", "statistics"] {
            statements.insert(name, client.prepare(&texts[name]).await.expect(name));
        }
        connections.push(Connection { client, statements });
    }
    let keys = Keys { pepper: derive("api-key-pepper"), cursor: derive("cursor") };
    let server = Arc::new(Server { connections, next: AtomicUsize::new(0), keys });

    let route = |name: &'static str, answer: Answer| {
        let server = server.clone();
        get(move |headers: HeaderMap| async move { server.serve(name, answer, headers).await })
    };
    let of_achievements = {
        let server = server.clone();
        get(move |RawQuery(query): RawQuery, headers: HeaderMap| async move {
            match query.as_deref() {
                None => server.serve("achievements", answers::achievements, headers).await,
                Some("action=stats") => server.serve("statistics", answers::statistics, headers).await,
                _ => failure(StatusCode::NOT_FOUND, "not_found"),
            }
        })
    };
    let app = Router::new()
        .route("/api/public/profile", route("profile", answers::profile))
        .route("/api/public/events", route("events", answers::events))
        .route("/api/public/connections", route("connections", answers::connections))
        .route("/api/public/achievements", of_achievements)
        .fallback(|| async { failure(StatusCode::NOT_FOUND, "not_found") });
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{}", setting("PORT"))).await.expect("PORT");
    axum::serve(listener, app).await.expect("serve");
}

impl Server {
    async fn serve(&self, name: &str, answer: Answer, headers: HeaderMap) -> axum::response::Response {
        let key = headers.get("x-api-key").and_then(|value| value.to_str().ok()).unwrap_or("");
        if key.len() != 71 {
            return failure(StatusCode::UNAUTHORIZED, "invalid_credentials");
        }
        let hash = sum(&self.keys.pepper, &[key.as_bytes()]);
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let Connection { client, statements } = &self.connections[turn];
        match client.query(&statements[name], &[&&key[9..21], &&hash[..]]).await {
            Ok(rows) => match answer(&rows, &self.keys) {
                Some(body) => ([(header::CONTENT_TYPE, JSON)], body).into_response(),
                None => failure(StatusCode::UNAUTHORIZED, "invalid_credentials"),
            },
            Err(error) => {
                eprintln!("{error}");
                failure(StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable")
            }
        }
    }
}

fn failure(status: StatusCode, code: &str) -> axum::response::Response {
    (status, [(header::CONTENT_TYPE, JSON)], format!(r#"{{"code":"{code}"}}"#)).into_response()
}

fn setting(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

fn derive(label: &str) -> Sha256Mac {
    let secret = STANDARD.decode(setting("SECRET_KEY")).expect("SECRET_KEY");
    let mut key = [0; 32];
    Hkdf::<Sha256>::new(None, &secret).expand(format!("pua:{label}").as_bytes(), &mut key).expect("32 bytes");
    Sha256Mac::new_from_slice(&key).expect("a key of any length")
}

pub fn sum(mac: &Sha256Mac, parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = mac.clone();
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}
