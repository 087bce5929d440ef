# The API that receives the calls of a guide.
python3 "$PROJECT/tests/commands/guides/receiver.py" "$API" &
until (exec 3<> "/dev/tcp/127.0.0.1/$API") 2>> /dev/null; do sleep 0.1; done
export COUNTERSIGN__LISTEN__ADDRESS="127.0.0.1:$PUBLIC" COUNTERSIGN__ADMIN__LISTEN="127.0.0.1:$ADMIN"
