# There is no cluster: the objects are only made.
kubectl() { command kubectl "$@" --dry-run=client --output=name; }
# tests/deploy/manifests.rs compares what the chart gives.
helm() {
    local version=$(sed -n 's/^version: //p' "$PROJECT/deploy/charts/countersign/Chart.yaml")
    [ "$1 $2 $3 $5 $6" = "upgrade --install countersign --version $version" ] && [ "${4##*/}" = countersign ] && [ "${!#}" = config=config.toml ] && [ -e config.toml ]
}
cp "$PROJECT/deploy/kubernetes/replicas/config.toml" .
