"""Keystone with its extension OS-OAUTH1, on SQLite: `serve.py DIRECTORY`. The password of admin is "secret". Prints `LISTENING <port>`."""

import grp
import os
import pwd
import subprocess
import sys

directory = os.path.abspath(sys.argv[1])
configuration = f"{directory}/keystone.conf"
keys = f"{directory}/keys"
os.mkdir(keys, 0o700)
with open(configuration, "w") as file:
    file.write(f"""
[auth]
methods = password,token,oauth1
[cache]
enabled = false
[credential]
key_repository = {keys}
[database]
connection = sqlite:///{directory}/keystone.db
[fernet_receipts]
key_repository = {keys}
[fernet_tokens]
key_repository = {keys}
[identity]
password_hash_algorithm = scrypt
[oslo_middleware]
enable_proxy_headers_parsing = true
""")

manage = [f"{os.path.dirname(sys.executable)}/keystone-manage", "--config-file", configuration]
owner = ["--keystone-user", pwd.getpwuid(os.getuid()).pw_name, "--keystone-group", grp.getgrgid(os.getgid()).gr_name]
for words in (["db_sync"], ["fernet_setup", *owner], ["bootstrap", "--bootstrap-password", "secret"]):
    subprocess.run([*manage, *words], check=True, stdout=sys.stderr)

sys.argv = sys.argv[:1]
os.environ["OS_KEYSTONE_CONFIG_FILES"] = configuration

from keystone.server.wsgi import initialize_public_application
from werkzeug.serving import WSGIRequestHandler, make_server

WSGIRequestHandler.protocol_version = "HTTP/1.1"
server = make_server("127.0.0.1", 0, initialize_public_application(), threaded=True)
print(f"LISTENING {server.server_port}", flush=True)
server.serve_forever()
