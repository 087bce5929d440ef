ln -s "$PROJECT/deploy" deploy
