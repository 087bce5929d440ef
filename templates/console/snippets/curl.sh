countersign sign GET '@URL@' --consumer-key '@KEY@' --consumer-secret '@SECRET@' --curl | sh  @api
response=$(countersign sign GET '@URL@' --consumer-key '@KEY@' --consumer-secret '@SECRET@' --callback '@CALLBACK@' --curl | sh)  @flow
echo "$response"  @flow
echo "Open @OPEN@$(echo "$response" | sed 's/.*oauth_token=\([^&]*\).*/\1/')"  @flow
