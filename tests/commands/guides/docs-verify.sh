# A release of two files, signed as deploy/release signs.
mkdir release && cd release
echo package > countersign.deb
echo image > image.tar.gz
minisign -G -W -p ../minisign.pub -s ../key > ../key.log
MINISIGN_SECRET_KEY=$HOME/key "$PROJECT/deploy/sign" . > ../sign.log
mv ../minisign.pub .
# Not downloaded.
rm image.tar.gz
