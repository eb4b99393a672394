# What every program here is told, and how it tells what it did: the address to sign in at, then the member it read.
require 'base64'
require 'digest'
require 'json'
require 'net/http'
require 'securerandom'
require 'uri'

ISSUER, CLIENT_ID, REDIRECT_URI = ENV.values_at('ISSUER', 'CLIENT_ID', 'REDIRECT_URI')

# Prints where the member signs in. Returns the parameters with which they came back.
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
