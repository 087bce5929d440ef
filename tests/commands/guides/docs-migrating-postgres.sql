-- The tables of an API in Django, with records to migrate and others that are not migrated.
CREATE DATABASE library;
\connect library
CREATE TABLE api_consumer (id bigint PRIMARY KEY, key text, secret text, title text, redirect_uri text, rsa_key text NOT NULL, realms text, active boolean);
INSERT INTO api_consumer VALUES
  (1, 'reader', E'back\\slash\tand tab', 'Münchner "Bücherei"', 'https://reader.example/ready', '', 'read', true),
  (2, 'signer', '', 'Signer', NULL, E'-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAoJ1lggHcQYcbYR8v55oZ\n9I9f6mk9RpXODACSwLUapd5wg8rwnkgKOR9ecmLsOCC4WQnS5k+7Dg/qEqOjqypj\n1fpte4LtmitU+f7tFBIHKldKACeVPoKFYukAUJokGOzQoIXfOu1IBRBTBaBzp9Z/\nv80iScZrHD3J2T5+VVqQAwBO6mDLEJzGDIlNOG5NrjRsrvy64O+ScL0YsFrHRC33\n+aKNO8RcjbaBi7EUO1Tm4YZVGK/KD3+sXpezCYnio5T9DBkdCTXujOCPNf3QjJly\nyr8IuuoLYi/ON3Sz2/LN6LX7FyiZ5rtWP6rPaajOic2+U2hG6eIqzHa845UZOcBk\nVwIDAQAB\n-----END PUBLIC KEY-----\n', 'read', true),
  (3, 'gone', 'secret', 'Gone', NULL, '', 'read', false);
CREATE TABLE auth_user (id int PRIMARY KEY, username text, password text, is_active boolean);
INSERT INTO auth_user VALUES
  (1, 'ada@example.com', '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW', true),
  (2, 'single sign-on', '!Zb8Yy1nZp7bA8dKq7Uo1xWqv8oYw3sX9e0aVnT5r', true),
  (3, 'eve', '!', false);
CREATE TABLE api_accesstoken (token text, secret text, realms text, consumer_id bigint, user_id int);
INSERT INTO api_accesstoken VALUES
  ('of-ada', 'secret', 'read', 1, 1), ('of-eve', 'secret', 'read', 1, 3), ('of-gone', 'secret', 'read', 3, 1);
