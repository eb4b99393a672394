require_relative 'harness'
# docs: ruby-oauth2 · Code and refresh; used by OmniAuth strategies · no discovery; verifier, challenge, checking `state`
require 'oauth2'

client = OAuth2::Client.new(CLIENT_ID, nil, site: ISSUER, authorize_url: '/oauth/authorize',
                                            token_url: '/oauth/token', auth_scheme: :request_body)
verifier, state = SecureRandom.urlsafe_base64(48), SecureRandom.urlsafe_base64(16)
challenge = Base64.urlsafe_encode64(Digest::SHA256.digest(verifier), padding: false)
back = sign_in(client.auth_code.authorize_url(redirect_uri: REDIRECT_URI, scope: 'profile:read events:read',
                                              state: state, code_challenge: challenge, code_challenge_method: 'S256'))
raise 'not the sign-in that was begun here' unless back['state'] == state

tokens = client.auth_code.get_token(back['code'], redirect_uri: REDIRECT_URI, code_verifier: verifier)
username = tokens.get('/api/public/me').parsed['username']
renewed = tokens.refresh!
# end
done(username, me(renewed.token))
