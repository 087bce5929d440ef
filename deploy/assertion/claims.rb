# Verifies an assertion with jwt 2 and rbnacl (docs/assertion.md). `url` is the public URL of the request without its query.
require "jwt"
require "net/http"
require "rbnacl"

def keys
  if @read.nil? || Time.now - @read > 300
    @keys = JSON.parse(Net::HTTP.get(URI("https://auth.example.com/.well-known/jwks.json")))["keys"]
    @read = Time.now
  end
  @keys
end

def claims(assertion, method, url)
  options = {
    algorithms: %w[EdDSA ES256], required_claims: %w[exp iat jti],
    iss: "https://auth.example.com", verify_iss: true, aud: "https://api.internal", verify_aud: true,
  }
  found, = JWT.decode(assertion, nil, true, options) do |header|
    raise JWT::DecodeError, "it is for another purpose" unless header["typ"] == "countersign+jwt"
    key = keys.find { |key| [key["kid"], key["alg"]] == header.values_at("kid", "alg") }
    raise JWT::DecodeError, "its key is not known" unless key
    key["kty"] == "OKP" ? RbNaCl::VerifyKey.new(JWT::Base64.url_decode(key["x"])) : JWT::JWK.import(key).keypair
  end
  raise JWT::DecodeError, "it is for another request" unless found.values_at("htm", "htu") == [method, url]
  found
end
