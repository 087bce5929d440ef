# A MariaDB with the tables of Layer7's OAuth Toolkit as its schema otk2.0 has them, and the answer of Apigee's management API as its documents show it.
. "$PROJECT/tests/commands/guides/mariadb.sh"
mysql <<'END'
CREATE DATABASE otk_db;
USE otk_db;
CREATE TABLE oauth_client_key (
  client_key varchar(128) PRIMARY KEY, secret varchar(128) NOT NULL, scope varchar(512) NOT NULL DEFAULT 'oob',
  callback varchar(2048) NOT NULL DEFAULT 'oob', status varchar(128) NOT NULL, client_name varchar(128) NOT NULL);
INSERT INTO oauth_client_key VALUES
  ('acf89db2', 'secret-of-printer', 'oob', 'https://printer.example/ready', 'ENABLED', 'Photo printer'),
  ('54f0c455', 'secret-of-script', 'oob', 'oob', 'ENABLED', 'Script'), ('gone', 'secret', 'oob', 'oob', 'DISABLED', 'Gone');
CREATE TABLE oauth_token (
  otk_token_id varchar(128) PRIMARY KEY, token varchar(128) UNIQUE, secret varchar(128), expiration bigint NOT NULL, resource_owner varchar(128) NOT NULL,
  status varchar(128) NOT NULL, client_key varchar(128) NOT NULL);
INSERT INTO oauth_token VALUES
  ('1', 'token-of-ada', 'secret-of-ada', 4102444800, 'ada', 'ENABLED', 'acf89db2'), ('2', 'bearer', NULL, 4102444800, 'bob', 'ENABLED', '54f0c455'),
  ('3', 'revoked', 'secret', 4102444800, 'ada', 'DISABLED', 'acf89db2');
END
cat > apps.json <<'END'
{"app": [
  {"appId": "1", "name": "weather", "status": "approved", "callbackUrl": "https://weather.example/back",
   "credentials": [{"consumerKey": "apigee1", "consumerSecret": "secret-of-weather", "status": "approved"}]},
  {"appId": "2", "name": "script", "status": "approved",
   "credentials": [{"consumerKey": "apigee2", "consumerSecret": "secret2", "status": "approved"}, {"consumerKey": "old", "consumerSecret": "secret3", "status": "revoked"}]}
]}
END
