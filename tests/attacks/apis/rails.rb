# An API on the router of Rails and on Puma: it merges the slashes of a path, and decodes each segment.
require "logger"
require "rack"
require "action_dispatch"
require "puma"

say = ->(route) { ->(_env) { [200, { "X-Route" => route }, [route]] } }
routes = ActionDispatch::Routing::RouteSet.new
routes.draw do
  match "/admin", to: say["secret"], via: :all
  match "/open/admin", to: say["secret"], via: :all
  match "/items/:id/secret", to: say["secret"], via: :all
  match "/items/:id", to: say["item"], via: :all
  match "/open/*rest", to: say["open"], via: :all
  post "/write/:id", to: say["write"]
  get "/report/:id", to: say["report"]
  post "/photos/:id", to: say["post"]
  delete "/photos/:id", to: say["delete"]
  get "/read/*rest", to: say["read"]
  match "*rest", to: ->(_env) { [404, { "X-Route" => "none" }, []] }, via: :all
end
application = Rack::Builder.new do
  use Rack::MethodOverride
  use Rack::Head
  run routes
end
server = Puma::Server.new(application.to_app, Puma::Events.strings)
server.add_tcp_listener("127.0.0.1", Integer(ARGV[0]))
server.run.join
