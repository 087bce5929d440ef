# A release of two files, signed as deploy/release signs.
mkdir release && cd release
echo package > countersign.deb
echo image > image.tar.gz
minisign -G -W -p ../minisign.pub -s ../key > ../key.log
MINISIGN_SECRET_KEY=$HOME/key "$PROJECT/deploy/sign" . > ../sign.log
mv ../minisign.pub .
# Not downloaded.
rm image.tar.gz
# Not released: tests/deploy/release.py shows that the workflow signs these names.
cosign() {
    case "$1" in
        verify-blob) [ "$2 $3 ${!#}" = "--bundle SHA256SUMS.sigstore.json SHA256SUMS" ] ;;
        verify) [ "${!#}" = REGISTRY/countersign:0.1.0 ] ;;
        *) return 1 ;;
    esac
}
gh() {
    [ "$1 $2 $4 $5" = "attestation verify --repo OWNER/NAME" ] || return 1
    case "$3" in oci://*) ;; *) [ -e "$3" ] ;; esac
}
