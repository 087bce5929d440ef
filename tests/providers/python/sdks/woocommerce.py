from woocommerce import API


def calls(app):
    def api(**more):
        return API(url="http://shop.example.com", consumer_key=app.key, consumer_secret=app.secret, **more)

    def answered(answer):
        answer.raise_for_status()

    app.call("products", lambda: answered(api().get("products", params={"search": app.tricky, "per_page": 10})))
    app.call("create", lambda: answered(api().post("products", {"name": app.tricky, "tags": [{"id": 1}]})))
    app.call("delete", lambda: answered(api().delete("products/7", params={"force": True})))
    app.call("legacy", lambda: answered(api(wp_api=False, version="v2").get("products", params={"page": 2})))
