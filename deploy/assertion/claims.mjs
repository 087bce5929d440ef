// Verifies an assertion with jose (docs/assertion.md). `url` is the public URL of the request without its query.
import { createRemoteJWKSet, jwtVerify } from "jose";

const keys = createRemoteJWKSet(new URL("https://auth.example.com/.well-known/jwks.json"), { cacheMaxAge: 300_000 });

export async function claims(assertion, method, url) {
  const { payload } = await jwtVerify(assertion, keys, {
    typ: "countersign+jwt",
    algorithms: ["EdDSA", "ES256"],
    issuer: "https://auth.example.com",
    audience: "https://api.internal",
    requiredClaims: ["exp", "iat", "jti"],
  });
  if (payload.htm !== method || payload.htu !== url) {
    throw new Error("it is for another request");
  }
  return payload;
}
