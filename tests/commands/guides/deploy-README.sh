# There is neither a container engine nor a cluster: container programs run here, and a cluster's files are only made.
sudo() { "$@"; }
docker() {
    # tests/deploy/image.sh runs the program of the image.
    case "$1 $2" in
        "build -t") test -e Dockerfile && return ;;
        "run --detach") grep -qx "ENTRYPOINT \[\"${*: -1}\"\]" Dockerfile && return ;;
        "exec countersign") shift 2 && "$@" && return ;;
    esac
    [ "$1" = compose ] || return 1
    shift
    local file=compose.yaml
    [ "$1" != --file ] || { file=$2 && shift 2; }
    case "$1" in
        up) test -e "$file" ;;
        exec)
            shift
            [ "$1" != -T ] || shift
            grep -q "^  $1:$" "$file" && shift && "$@"
            ;;
        *) return 1 ;;
    esac
}
# tests/deploy/manifests.rs compares what the chart gives.
helm() { [ "$1 $2 $3" = 'upgrade --install countersign' ] && [ -e "$4/Chart.yaml" ]; }
kubectl() {
    case " $* " in
        *" create "*) command kubectl "$@" --dry-run=client --output=name ;;
        " apply -k "*) command kubectl kustomize "$3" > /dev/null ;;
        *) return 1 ;;
    esac
}
cp -r "$PROJECT/deploy" "$PROJECT/Dockerfile" "$PROJECT/Cargo.toml" .
rm -rf deploy/secrets
cat > config.toml <<END
listen.address = "127.0.0.1:$PUBLIC"
admin.listen = "127.0.0.1:$ADMIN"
upstream.api_url = "http://127.0.0.1:$API"
END
export COUNTERSIGN_CONFIG=$PWD/config.toml
python3 -m http.server --bind 127.0.0.1 "$API" > api.log 2>&1 &
until curl -o /dev/null "http://127.0.0.1:$API/"; do sleep 0.1; done
