countersign sign GET '@URL@' --consumer-key '@KEY@' --consumer-secret '@SECRET@' --curl | sh
