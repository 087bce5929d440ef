-- The parts of the systems' data that the guide reads, with records to migrate and others that are not migrated.
CREATE DATABASE shop;
USE shop;
CREATE TABLE apps (consumer_key varchar(64), consumer_secret varchar(64), title text, callback_url text, active boolean);
INSERT INTO apps VALUES
  ('dpf43f3p2l4k3l03', 'kd94hf93k423kf44', 'Photo printer', 'https://printer.example/ready', true),
  ('gone', 'secret', 'Gone', NULL, false);
CREATE TABLE members (id int, login varchar(64), password varchar(255));
INSERT INTO members VALUES (4711, 'ada', '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW');
CREATE TABLE access_tokens (token varchar(64), token_secret varchar(64), app_key varchar(64), member_id int, revoked boolean);
INSERT INTO access_tokens VALUES
  ('nnch734d00sl2jdk', 'pfkkdhi9sl3r4s00', 'dpf43f3p2l4k3l03', 4711, false),
  ('revoked', 'secret', 'dpf43f3p2l4k3l03', 4711, true);

CREATE DATABASE php;
USE php;
CREATE TABLE oauth_server_registry (
  osr_id int AUTO_INCREMENT PRIMARY KEY, osr_consumer_key varchar(64) BINARY NOT NULL, osr_consumer_secret varchar(64) BINARY NOT NULL,
  osr_enabled tinyint(1) NOT NULL, osr_callback_uri varchar(255) NOT NULL, osr_application_title varchar(80) NOT NULL);
INSERT INTO oauth_server_registry VALUES (1, 'php1', 'secret-of-php', 1, '', 'PHP'), (2, 'php2', 'secret', 0, '', 'Disabled');
CREATE TABLE oauth_server_token (
  ost_id int AUTO_INCREMENT PRIMARY KEY, ost_osr_id_ref int NOT NULL REFERENCES oauth_server_registry (osr_id), ost_usa_id_ref int NOT NULL,
  ost_token varchar(64) BINARY NOT NULL, ost_token_secret varchar(64) BINARY NOT NULL, ost_token_type enum ('request', 'access'),
  ost_authorized tinyint(1) NOT NULL);
INSERT INTO oauth_server_token VALUES
  (1, 1, 4711, 'phptoken', 'phpsecret', 'access', 1), (2, 1, 4711, 'request', 'secret', 'request', 1), (3, 2, 4711, 'disabled', 'secret', 'access', 1);

CREATE DATABASE wiki;
USE wiki;
CREATE TABLE user (user_id int unsigned AUTO_INCREMENT PRIMARY KEY, user_name varchar(255) BINARY NOT NULL);
INSERT INTO user VALUES (12, 'Bob'), (13, 'Nobody');
CREATE TABLE oauth_registered_consumer (
  oarc_id int unsigned AUTO_INCREMENT PRIMARY KEY, oarc_consumer_key varbinary(32) NOT NULL, oarc_name varchar(128) BINARY NOT NULL,
  oarc_callback_url blob NOT NULL, oarc_secret_key varbinary(32), oarc_stage tinyint unsigned NOT NULL, oarc_oauth_version tinyint NOT NULL);
INSERT INTO oauth_registered_consumer VALUES
  (1, 'wiki1', 'Bot', 'https://bot.example/back', 'abc', 1, 1), (2, 'wiki2', 'Proposed', '', 'abc', 0, 1), (3, 'wiki3', 'OAuth 2', '', 'abc', 1, 2);
CREATE TABLE oauth_accepted_consumer (
  oaac_id int unsigned AUTO_INCREMENT PRIMARY KEY, oaac_user_id int unsigned NOT NULL, oaac_consumer_id int unsigned NOT NULL,
  oaac_access_token varbinary(32) NOT NULL, oaac_access_secret varbinary(32) NOT NULL, oaac_oauth_version tinyint NOT NULL);
INSERT INTO oauth_accepted_consumer VALUES (1, 12, 1, 'wikitoken', 'def', 1), (2, 12, 3, 'other', 'ghi', 2), (3, 13, 2, 'proposed', 'jkl', 1);

CREATE DATABASE magento;
USE magento;
CREATE TABLE oauth_consumer (
  entity_id int unsigned AUTO_INCREMENT PRIMARY KEY, name varchar(255) NOT NULL, `key` varchar(32) NOT NULL, secret varchar(32) NOT NULL,
  callback_url text);
INSERT INTO oauth_consumer VALUES (1, 'ERP', 'mage1', 'secret-of-mage', 'https://erp.example/back'), (2, 'Script', 'mage2', 'secret-of-script', NULL);
CREATE TABLE oauth_token (
  entity_id int unsigned AUTO_INCREMENT PRIMARY KEY, consumer_id int unsigned, admin_id int unsigned, customer_id int unsigned,
  type varchar(16) NOT NULL, token varchar(32) NOT NULL, secret varchar(128) NOT NULL, callback_url text NOT NULL,
  revoked smallint unsigned NOT NULL, authorized smallint unsigned NOT NULL);
INSERT INTO oauth_token VALUES
  (1, 1, 1, NULL, 'access', 'magetoken', 'tokensecret', '', 0, 1), (2, 1, NULL, 8, 'access', 'revoked', 'secret', '', 1, 1),
  (3, 1, NULL, 8, 'request', 'request', 'secret', '', 0, 1), (4, 1, NULL, 8, 'access', 'undecided', 'secret', '', 0, 0);

CREATE DATABASE wordpress;
USE wordpress;
CREATE TABLE wp_options (option_id bigint unsigned AUTO_INCREMENT PRIMARY KEY, option_name varchar(191) NOT NULL, option_value longtext NOT NULL);
INSERT INTO wp_options (option_name, option_value) VALUES
  ('siteurl', 'https://editor.example'), ('oauth1xaccessx', 'not one'),
  ('oauth1_request_abc', 'a:0:{}'),
  ('oauth1_access_wptoken', 'a:4:{s:3:"key";s:7:"wptoken";s:6:"secret";s:8:"wpsecret";s:8:"consumer";i:3;s:4:"user";i:7;}');
