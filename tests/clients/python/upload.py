"""Sends a form that is too large: upload.py URL BYTES [ROOTS]. Prints the status and the first word of the response."""

import sys

import requests

url, size = sys.argv[1], int(sys.argv[2])
verify = sys.argv[3] if len(sys.argv) > 3 else True
headers = {"Content-Type": "application/x-www-form-urlencoded"}
if len(sys.argv) > 3:
    # The service's own name, whatever its port is in the test.
    headers["Host"] = "localhost"
response = requests.post(
    url,
    data=b"a=" + b"x" * size,
    headers=headers,
    verify=verify,
    timeout=60,
)
print(response.status_code, response.text.split()[0])
