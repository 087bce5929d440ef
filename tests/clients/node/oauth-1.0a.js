'use strict';
// The whole flow and a set of protected calls with the npm library oauth-1.0a, every parameter where `placement` says.

const crypto = require('node:crypto');
const OAuth = require('oauth-1.0a');
const { settings, say, callback, send, run } = require('./support');

const base = settings.base_url;
const method = settings.method || 'HMAC-SHA256';
const hash = { 'HMAC-SHA1': 'sha1', 'HMAC-SHA256': 'sha256', 'HMAC-SHA512': 'sha512' }[method];
const oauth = OAuth({
  consumer: { key: settings.consumer_key, secret: settings.consumer_secret },
  signature_method: method,
  hash_function: (text, key) => crypto.createHmac(hash, key).update(text).digest('base64'),
});
const form = (data) => Object.entries(data).map(([name, value]) => `${oauth.percentEncode(name)}=${oauth.percentEncode(value)}`).join('&');

/** Signs a request and places the parameters: [method, url, headers, body] as they are sent. */
function signed(verb, url, data, token, extra = {}) {
  const request = { method: verb, url, data: { ...data, ...extra } };
  const parameters = oauth.authorize(request, token);
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const own = Object.fromEntries(Object.entries(parameters).filter(([name]) => name.startsWith('oauth_')));
  if (settings.placement === 'body' && verb === 'POST') return [verb, url, headers, form({ ...data, ...own })];
  if (settings.placement === 'query') {
    return [verb, `${url}${url.includes('?') ? '&' : '?'}${form(own)}`, data ? headers : {}, data ? form(data) : undefined];
  }
  return [verb, url, { ...(data ? headers : {}), ...oauth.toHeader(own) }, data ? form(data) : undefined];
}

run(async () => {
  const { address, back } = await callback();
  const ask = async (mode, token, extra) => {
    const answer = await send(...signed('POST', `${base}/service.oauth?mode=${mode}`, undefined, token, extra));
    if (answer.status !== 200) throw new Error(`${mode}: ${answer.status} ${answer.text}`);
    return Object.fromEntries(new URLSearchParams(answer.text));
  };
  const pair = (told) => ({ key: told.oauth_token, secret: told.oauth_token_secret });
  const requestToken = await ask('req_req_token', undefined, { oauth_callback: address });
  say('AUTHORIZE', `${base}/service.oauth?mode=auth_req_token&oauth_token=${encodeURIComponent(requestToken.oauth_token)}`);
  const came = await back();
  const token = await ask('req_acc_token', pair(requestToken), { oauth_verifier: came.oauth_verifier });

  const calls = {};
  const call = async (name, verb, target, data) => {
    calls[name] = (await send(...signed(verb, base + target, data, pair(token)))).status;
  };
  await call('form', 'POST', '/members', { b: '2 é', a: '1', 'c&': '=+' });
  await call('form and query', 'POST', '/members?x=1%202', { a: 'b' });
  await call('empty post', 'POST', '/members', undefined);
  if (settings.placement !== 'body') {
    await call('plain', 'GET', '/members/1');
    // Names of letters alone: this library signs an encoded name as it is in the URL, encoded once more.
    await call('query', 'GET', '/members?a=1&b=2%203&e=%C3%BC%26%3D');
    await call('delete', 'DELETE', '/members/1');
  }
  const same = signed('POST', `${base}/pay?amount=1`, { to: 'bob' }, pair(token));
  const first = await send(...same);
  const second = await send(...same);
  const problem = new URLSearchParams(second.text).get('oauth_problem');
  return { back: came, token, calls, replay: [first.status, second.status, problem] };
});
