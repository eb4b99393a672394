require_relative 'harness'
# docs: ruby-openid-connect · Discovery and ID tokens, over rack-oauth2 · discovery requires https; verifier, challenge, checking `state`
require 'openid_connect'

SWD.url_builder = URI::HTTP if ISSUER.start_with?('http:') # only for a server on your own machine
found = OpenIDConnect::Discovery::Provider::Config.discover!(ISSUER)
client = OpenIDConnect::Client.new(identifier: CLIENT_ID, redirect_uri: REDIRECT_URI,
                                   authorization_endpoint: found.authorization_endpoint,
                                   token_endpoint: found.token_endpoint, userinfo_endpoint: found.userinfo_endpoint)
verifier, state = SecureRandom.urlsafe_base64(48), SecureRandom.urlsafe_base64(16)
challenge = Base64.urlsafe_encode64(Digest::SHA256.digest(verifier), padding: false)
back = sign_in(client.authorization_uri(scope: %w[openid profile:read events:read], state: state,
                                        code_challenge: challenge, code_challenge_method: 'S256'))
raise 'not the sign-in that was begun here' unless back['state'] == state

client.authorization_code = back['code']
tokens = client.access_token!(:body, code_verifier: verifier)
id_token = OpenIDConnect::ResponseObject::IdToken.decode(tokens.id_token, found.jwks)
id_token.verify!(issuer: ISSUER, client_id: CLIENT_ID)
client.refresh_token = tokens.refresh_token
renewed = client.access_token!(:body)
# end
done(me(tokens.access_token), me(renewed.access_token))
