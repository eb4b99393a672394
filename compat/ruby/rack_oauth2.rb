require_relative 'harness'
# docs: ruby-rack-oauth2 · Code and refresh · no discovery; verifier, challenge, checking `state`
require 'rack/oauth2'

at = URI(ISSUER)
client = Rack::OAuth2::Client.new(identifier: CLIENT_ID, redirect_uri: REDIRECT_URI, scheme: at.scheme, host: at.host,
                                  port: at.port, authorization_endpoint: '/oauth/authorize', token_endpoint: '/oauth/token')
verifier, state = SecureRandom.urlsafe_base64(48), SecureRandom.urlsafe_base64(16)
challenge = Base64.urlsafe_encode64(Digest::SHA256.digest(verifier), padding: false)
back = sign_in(client.authorization_uri(scope: %w[profile:read events:read], state: state,
                                        code_challenge: challenge, code_challenge_method: 'S256'))
raise 'not the sign-in that was begun here' unless back['state'] == state

client.authorization_code = back['code']
tokens = client.access_token!(:body, code_verifier: verifier)
client.refresh_token = tokens.refresh_token
renewed = client.access_token!(:body)
# end
done(me(tokens.access_token), me(renewed.access_token))
