# The input and output of every program in this folder, which prints the sign-in URL, then the member that it read.
require 'base64'
require 'digest'
require 'json'
require 'net/http'
require 'securerandom'
require 'uri'

ISSUER, CLIENT_ID, REDIRECT_URI = ENV.values_at('ISSUER', 'CLIENT_ID', 'REDIRECT_URI')

# Prints the sign-in URL. Returns the redirect's parameters.
def sign_in(url)
  puts url
  $stdout.flush
  URI.decode_www_form(URI($stdin.gets.strip).query).to_h
end

def me(token)
  JSON.parse(Net::HTTP.get(URI("#{ISSUER}/api/public/me"), 'Authorization' => "Bearer #{token}"))['username']
end

def done(username, again)
  puts JSON.generate(username: username, again: again)
end
