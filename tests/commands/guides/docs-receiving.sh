. "$PROJECT/tests/commands/guides/receiver.sh"
# The calls of the guide have to reach the receiver, and what the guide says of others is true.
sh() {
    command sh "$@" > sent.out
    case $1 in
        outcome)
            grep -q '^from scores: $' sent.out && command sh outcome | grep -q nonce_used &&
                countersign sign POST "http://127.0.0.1:$PUBLIC/outcomes" --consumer-key scores \
                    --header 'Content-Type: application/xml' --data '<score>0.83</score>' --curl > unhashed &&
                command sh unhashed | grep -q parameter_absent
            ;;
        notification) grep -q '^from scores: 7$' sent.out ;;
        *) false ;;
    esac
}
