'use strict';
// The whole flow and a set of protected calls, as an application does them with node-oauth.

const { OAuth } = require('oauth');
const { settings, say, callback, send, run } = require('./support');

const base = settings.base_url;

run(async () => {
  const { address, back } = await callback();
  const oauth = new OAuth(
    `${base}/service.oauth?mode=req_req_token`,
    `${base}/service.oauth?mode=req_acc_token`,
    settings.consumer_key,
    settings.consumer_secret,
    settings.version || '1.0',
    address,
    'HMAC-SHA1',
  );
  oauth.setClientOptions({
    requestTokenHttpMethod: settings.token_method || 'POST',
    accessTokenHttpMethod: settings.token_method || 'POST',
  });
  const calling = (method, ...parameters) => new Promise((resolve, reject) => {
    oauth[method](...parameters, (error, ...results) => (error ? reject(error) : resolve(results)));
  });
  const [requestToken, requestSecret, more] = await calling('getOAuthRequestToken');
  if (more.oauth_callback_confirmed !== 'true') throw new Error(JSON.stringify(more));
  say('AUTHORIZE', `${base}/service.oauth?mode=auth_req_token&oauth_token=${encodeURIComponent(requestToken)}`);
  const came = await back();
  const [token, secret, user] = await calling('getOAuthAccessToken', requestToken, requestSecret, came.oauth_verifier);

  const calls = {};
  const call = async (name, method, target, ...parameters) => {
    calls[name] = await new Promise((resolve) => {
      oauth[method](base + target, token, secret, ...parameters, (error, _data, answer) => {
        resolve(error ? error.statusCode || String(error) : answer.statusCode);
      });
    });
  };
  await call('plain', 'get', '/members/1');
  // No name twice: this library signs a repeated `a` as `a[0]` and `a[1]`, which are not sent.
  await call('tricky query', 'get', "/members?a=1&a2=2%203&empty=&%C3%A9=%C3%BC%26%3D&b%5B%5D=x%2By&t=-._~!*'()");
  await call('plus query', 'get', '/members?a=1%202&b=2');
  await call('delete', 'delete', '/members/1');
  await call('form', 'post', '/members', { b: '2 é', a: '1', 'c&': '=+', quote: "!*'()" });
  await call('form and query', 'post', '/members?x=1', { a: 'b' });
  await call('empty post', 'post', '/members', '', '');
  await call('json', 'post', '/members', '{"oauth_token":"x","a":"b=c&d"}', 'application/json');
  await call('put form', 'put', '/members/1', { a: 'b' });

  // Everything in the query, and the same bytes twice.
  const signed = oauth.signUrl(`${base}/pay?amount=1`, token, secret, 'GET');
  const first = await send('GET', signed, {});
  const second = await send('GET', signed, {});
  const problem = new URLSearchParams(second.text).get('oauth_problem');
  return { back: came, token: { oauth_token: token, ...user }, calls, replay: [first.status, second.status, problem] };
});
