import asyncio

from maas.client import bones


def calls(app):
    key = f"{app.key}:{app.token}:{app.token_secret}"

    async def connected():
        _, session = await bones.SessionAPI.connect("https://maas.example.com/MAAS/", apikey=key)
        return session

    async def read():
        await (await connected()).Machines.read(hostname=[app.tricky, "b"], zone="")

    async def allocate():
        await (await connected()).Machines.allocate(name=app.tricky, tags=["a", "b"], comment="")

    app.call("read", lambda: asyncio.run(read()))
    app.call("allocate", lambda: asyncio.run(allocate()))
