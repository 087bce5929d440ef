import asyncio

from netsuite import Config, NetSuite, TokenAuth


def calls(app):
    client = NetSuite(
        Config(
            account="1234567_SB1",
            auth=TokenAuth(consumer_key=app.key, consumer_secret=app.secret, token_id=app.token, token_secret=app.token_secret),
        )
    )
    rest = client.rest_api
    app.call("orders", lambda: asyncio.run(rest.get("/record/v1/salesOrder", params={"q": app.tricky, "limit": 10, "fields": ""})))
    app.call("create", lambda: asyncio.run(rest.post("/record/v1/customer", json={"companyName": app.tricky, "ids": [1, 2]})))
    app.call("query", lambda: asyncio.run(rest.suiteql("SELECT * FROM t WHERE a = 'ü & %'")))
    app.call("restlet", lambda: asyncio.run(client.restlet.get(987, deploy=2)))
