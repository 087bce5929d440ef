language-name = Français
title-error = Erreur :
date-words = { $day } { $month ->
    [1] janvier
    [2] février
    [3] mars
    [4] avril
    [5] mai
    [6] juin
    [7] juillet
    [8] août
    [9] septembre
    [10] octobre
    [11] novembre
   *[12] décembre
} { $year }

login-title = Se connecter à { $service }
login-to-decide = Connectez-vous pour continuer vers { $consumer }.
login-name = Nom d’utilisateur
login-password = Mot de passe
login-submit = Se connecter
login-recovery = Mot de passe oublié ?
login-fields-missing = Saisissez votre nom d’utilisateur et votre mot de passe.
login-wrong = Le nom d’utilisateur ou le mot de passe est incorrect.
login-throttled = Il y a eu trop de tentatives infructueuses. Réessayez dans { $wait }.
login-busy = Trop de personnes se connectent en ce moment. Réessayez dans quelques secondes.
login-unavailable = Le service ne peut pas vérifier votre mot de passe pour le moment. Réessayez dans quelques secondes.

consent-title = { $consumer } demande l’accès à votre compte { $service }
consent-user = Compte : { $user }
consent-not-you = Ce n’est pas vous ?
consent-switch = Se connecter avec un autre compte
consent-earlier = Vous l’avez déjà autorisé le { $date }.
consent-more = { $count ->
    [one] Elle demande maintenant { $count } chose de plus, marquée « nouveau ».
   *[other] Elle demande maintenant { $count } choses de plus, marquées « nouveau ».
}
consent-nothing-new = L’application ne demande rien de nouveau.
consent-permissions = Si vous l’autorisez, l’application pourra
consent-identity = Savoir qui vous êtes
consent-identity-name = votre nom d’utilisateur et votre identifiant
consent-identity-full = votre nom, votre nom d’utilisateur et votre identifiant
consent-calls = Agir en votre nom pour ce qui n’exige aucune autorisation particulière
consent-new = nouveau
consent-sensitive = sensible
consent-sum = { $count } autorisations, dont { $sensitive ->
    [one] { $sensitive } sensible
   *[other] { $sensitive } sensibles
}
consent-sensitive-count = { $count ->
    [one] { $count } d’entre eux est sensible.
   *[other] { $count } d’entre eux sont sensibles.
}
consent-developer = Le nom et la description viennent du développeur et ne sont pas vérifiés par { $service }.
consent-developer-name = Le nom vient du développeur et n’est pas vérifié par { $service }.
consent-since = enregistrée le { $date }
consent-to-site = Quel que soit votre choix, vous retournerez sur { $site }.
consent-to-scheme = Quel que soit votre choix, une application de cet appareil qui ouvre les liens { $scheme } s’ouvrira ensuite.
consent-to-code = Si vous l’autorisez, vous recevrez un code à saisir dans l’application.
consent-allow = Autoriser
consent-deny = Refuser
consent-password = L’application ne voit jamais votre mot de passe.
consent-holds = L’accès dure jusqu’à ce que vous le révoquiez dans { $page }.
consent-holds-for = L’accès dure { $duration }, ou jusqu’à ce que vous le révoquiez dans { $page }.
consent-ends-unused = Il prend fin plus tôt s’il n’est pas utilisé pendant { $duration }.
consent-remembered = D’ici là, la question ne vous sera plus posée pour le même accès.
consent-continue = Continuer
consent-continue-to = Continuer vers { $site }

verifier-title = Vous avez autorisé { $consumer }
verifier-type = Saisissez ce code dans l’application :
verifier-lifetime = Il est valable { $lifetime } et ne sert qu’une fois. Ne le donnez à personne d’autre. Fermez cette page une fois que l’application l’a accepté.
verifier-taken = { $consumer } a reçu le code
verifier-taken-text = Vous pouvez fermer cette page.

denied-title = Vous avez refusé l’accès à { $consumer }
denied-text = L’application ne peut pas agir en votre nom. Vous pouvez fermer cette page.
denied-still = { $consumer } peut encore agir en votre nom grâce à l’accès déjà accordé.

applications-title = Applications connectées
applications-text = Ces applications peuvent agir en votre nom. Une révocation prend effet immédiatement.
applications-log-out = Se déconnecter
applications-withdrawn = { $consumer } ne peut plus agir en votre nom.
applications-none = Vous n’avez connecté aucune application.
applications-none-here = Parmi celles-ci, aucune application ne peut agir en votre nom.
applications-permissions = { $count ->
    [one] { $count } autorisation
   *[other] { $count } autorisations
}
applications-allowed = Autorisée le { $date }
applications-given = Autorisée par le responsable du service le { $date }
applications-own = Votre propre jeton d’accès, créé le { $date }
applications-used = dernière utilisation le { $date }
applications-unused = pas utilisée, ou seulement à l’instant
applications-withdraw = Révoquer
applications-more = Afficher la suite
applications-connections = { $count ->
    [one] { $count } connexion
   *[other] { $count } connexions
}

withdraw-title = Révoquer l’accès de { $consumer } ?
withdraw-text = L’application ne pourra plus agir en votre nom, sur aucun de vos appareils.
withdraw-cancel = Conserver l’accès

sessions-title = Sessions ouvertes
sessions-browser = { $browser } sur { $system }
sessions-unknown = Navigateur inconnu
sessions-this = Ce navigateur
sessions-since = depuis le { $date }, à partir de l’adresse { $address }
sessions-open = { $count ->
    [one] { $count } navigateur
   *[other] { $count } navigateurs
}
sessions-all = Les { $count } navigateurs
sessions-others = Se déconnecter partout ailleurs
sessions-end = Se déconnecter partout

logout-title = Se déconnecter de { $service } ?
logout-text = Vous devrez vous reconnecter dans ce navigateur.
logout-others-title = Se déconnecter partout ailleurs ?
logout-others-text = Votre session reste ouverte ici. Il faudra vous reconnecter dans tous les autres navigateurs.
logout-all-title = Se déconnecter partout ?
logout-all-text = Il faudra vous reconnecter dans tous vos navigateurs, celui-ci compris.
logout-applications = Les applications connectées conservent leur accès.
logout-cancel = Rester connecté

notice-out = La session est fermée.
notice-out-all = Toutes vos sessions sont fermées.
notice-out-others = Toutes vos autres sessions sont fermées.
notice-out-one = Ce navigateur est déconnecté.

password-title = Changer de mot de passe
password-rule = { $count ->
    [one] Utilisez au moins { $count } caractère.
   *[other] Utilisez au moins { $count } caractères.
}
password-text = Tous vos autres navigateurs seront déconnectés. Les applications qui peuvent agir en votre nom le pourront toujours.
password-must-change = Un opérateur a défini votre mot de passe. Choisissez-en un autre, que vous seul connaissez, pour continuer.
password-current = Mot de passe actuel
password-new = Nouveau mot de passe
password-again = Confirmez le nouveau mot de passe
password-changed = Votre mot de passe a été changé et tous vos autres navigateurs sont déconnectés.
password-fields-missing = Remplissez les trois champs.
password-differs = Les deux nouveaux mots de passe sont différents.
password-wrong = Le mot de passe actuel est incorrect.
password-short = Le nouveau mot de passe est trop court.
password-long = Le nouveau mot de passe est trop long.
password-same = Le nouveau mot de passe est le même que l’actuel.
password-name = Le nouveau mot de passe ne peut pas être votre nom.
password-common = Le nouveau mot de passe est l’un des plus courants, qui sont essayés en premier. Choisissez-en un autre.

duration-seconds = { $count ->
    [one] { $count } seconde
   *[other] { $count } secondes
}
duration-minutes = { $count ->
    [one] { $count } minute
   *[other] { $count } minutes
}
duration-hours = { $count ->
    [one] { $count } heure
   *[other] { $count } heures
}
duration-days = { $count ->
    [one] { $count } jour
   *[other] { $count } jours
}

footer-terms = Conditions d’utilisation
footer-privacy = Confidentialité
footer-help = Aide
footer-language = Langue

refusal-consumer = L’application est { $consumer }.
refusal-back = Retour à { $site }
refusal-developers = Pour les développeurs
refusal-docs = En savoir plus sur cette erreur

launch-title = L’activité ne s’est pas ouverte
launch-text = Ouvrez-la de nouveau depuis votre cours.
launch-busy = Attendez un instant, puis ouvrez-la de nouveau depuis votre cours.
launch-reference = Si cela ne suffit pas, donnez cette référence à votre enseignant :
launch-administrator = Pour l’administrateur
launch-message = { launch-title }. { launch-text } { launch-reference } { $reference }

developer-title = Appels rejetés de { $consumer }
developer-text = Pour les développeurs de cette application : quels appels { $service } a rejetés, et pourquoi. Aucun secret n’est affiché ici.
developer-until = Cette page prend fin le { $time }. Quiconque a son adresse peut la lire : ne la transmettez pas.
developer-process = Elle montre ce qu’un processus du service a vu depuis { $time }. S’il y en a plusieurs, un autre a peut-être vu davantage : rechargez la page.
developer-why = Pourquoi des appels ont été rejetés
developer-none = Aucun appel n’a été rejeté.
developer-calls-count = { $count ->
    [one] { $count } appel
   *[other] { $count } appels
}
developer-proof-verified = La signature est correcte.
developer-proof-secrets = La signature est incorrecte et a été faite avec vos secrets.
developer-proof-none = Non prouvé : n’importe qui peut envoyer votre clé.
developer-previous = Le dernier est signé avec votre secret précédent, qui va prendre fin.
developer-previous-until = Elle est signée avec votre secret précédent, qui prend fin le { $time }.
developer-observed = Ces appels sont passés. Ils seront rejetés dès que les signatures seront exigées.
developer-base-strings = Chaînes de base du dernier
developer-hidden = Les lettres et chiffres des valeurs et des chemins sont remplacés par x. Les différences sont marquées.
developer-right = Chaîne de base correcte
developer-signed = Chaîne de base signée
developer-last = Derniers appels
developer-check = Vérifier une requête
developer-check-text = Collez une requête telle qu’elle a été transmise, ou une commande curl, ou la chaîne de base que votre bibliothèque a signée, ou les deux. La requête n’est ni transmise ni conservée, et aucun secret n’est affiché.
developer-request = Requête
developer-base-string = Chaîne de base que votre bibliothèque a signée
developer-submit = Vérifier
developer-check-right = La signature est correcte. Ici, on ne vérifie ni si le nonce a déjà servi, ni si l’appel est permis.
developer-check-wrong = Cette requête est rejetée.
developer-check-unknown = La signature est incorrecte et aucune erreur connue ne la produit : comparez le secret de l’application, celui du jeton et les chaînes de base.
developer-check-well-formed = La chaîne de base est bien formée. Seule la requête dit si c’est la sienne.
developer-check-differs = La chaîne de base est mal formée. Les différences sont marquées.
developer-check-nothing = Collez une requête ou une chaîne de base.
developer-check-unreadable = Impossible de lire cela.
developer-check-other = Cette requête nomme une autre application.
developer-check-busy = Trop de requêtes sont vérifiées en ce moment. Réessayez dans quelques secondes.

collections-text = Des requêtes pour l’essayer, pour Bruno et Postman. Le fichier ne contient aucun secret : écrivez le vôtre dans ses variables.

register-title = Les clés de vos applications
register-text = Avec sa propre clé, une application que vous écrivez peut appeler { $service }.
register-none = Vous n’avez aucune clé.
register-manage = Gérer
register-new = Une nouvelle clé
register-name = Nom de l’application
register-description = À quoi elle sert
register-website = Site web (facultatif)
register-contact = Contact : une adresse électronique ou une page web
register-callbacks = Callbacks, un par ligne ; oob pour un programme sans page web
register-permissions = Autorisations dont elle a besoin
register-submit = Demander la clé
register-approval = Le responsable de { $service } décide pour chaque clé. Elle fonctionne dès qu’elle est approuvée.
register-sensitive = Le responsable de { $service } décide pour une clé qui demande une autorisation sensible. Les autres fonctionnent aussitôt.
register-key = Clé
register-secret = Secret
register-made = La clé de { $consumer }
register-once = Copiez le secret maintenant. Il ne sera plus affiché.
register-waiting = En attente d’approbation
register-works = Fonctionne
register-declined = Refusée
register-disabled = Désactivée
register-said = Le responsable a écrit : { $text }
register-asked = Ces callbacks attendent une approbation :
register-rotate = Créer un nouveau secret
register-grace = L’ancien secret fonctionne encore 24 heures
register-change = Modifier les callbacks
register-rejections = Voir les appels rejetés
register-end = Supprimer la clé
register-keep = Garder la clé
register-end-title = Supprimer la clé de { $consumer } ?
register-end-text = Tous ses accès prennent fin aussitôt, pour tous les utilisateurs. La clé ne peut pas être rétablie.
register-token = Créer un jeton d’accès pour vous-même
register-token-title = Votre jeton d’accès de { $consumer }
register-token-text = Avec lui, l’application agit en votre nom comme si vous l’aviez autorisée. Un nouveau jeton met fin au précédent ; vous pouvez aussi y mettre fin sur la page des applications connectées.
register-token-permits = Elle pourra
register-token-name = Jeton d’accès
register-invalid = Corrigez ceci et envoyez de nouveau :
register-taken = Une autre application porte ce nom. Choisissez-en un autre.
register-too-many = Il y a trop de clés en ce moment. Supprimez-en une dont vous n’avez pas besoin, ou réessayez demain.
register-ended = Aucune nouvelle clé n’est plus délivrée ici.

error-again = Recommencer
error-try-again = Réessayer
error-request = Référence
error-method = Cette page ne s’ouvre pas ainsi
error-method-text = Utilisez le bouton ou le lien de ce site.
error-malformed = Ce lien ne fonctionne pas
error-malformed-no-request = Il ne désigne aucune demande. Retournez à l’application et recommencez.
error-malformed-twice = Il indique deux fois la même chose.
error-malformed-permission = Il indique une autorisation que l’application ne peut pas demander.
error-malformed-decision = Le formulaire envoyé par votre navigateur ne contient aucune décision.
error-malformed-form = Le formulaire envoyé par votre navigateur est illisible.
error-malformed-user = Le proxy placé devant ce service ne désigne pas un seul utilisateur. Adressez-vous à l’exploitant.
error-two-sessions = Deux connexions à la fois
error-two-sessions-text = Votre navigateur a envoyé deux cookies de session pour ce site, et rien n’indique lequel est le vôtre. Supprimez les cookies de ce site et réessayez.
error-forged = Ce formulaire n’a pas été accepté
error-forged-text = Il ne vient pas d’une page de ce site. Rien n’a été modifié.
error-stale = Ce formulaire a expiré
error-stale-in = Vous vous êtes reconnecté depuis l’affichage de ce formulaire. Rien n’a été modifié.
error-stale-out = Vous avez été déconnecté depuis l’affichage de ce formulaire. Rien n’a été modifié.
error-stale-old = La page est restée ouverte trop longtemps. Rien n’a été modifié.
error-cookie = Votre navigateur n’a envoyé aucun cookie
error-cookie-text = Ce formulaire ne fonctionne qu’avec un cookie de ce site, qui ne contient qu’un nombre aléatoire. Autorisez les cookies pour ce site et recommencez.
error-unknown = Nous ne reconnaissons pas ce lien
error-unknown-text = Le lien de l’application n’est pas valable. Retournez à l’application et recommencez.
error-expired = Cette demande a expiré
error-expired-text = Trop de temps s’est écoulé. Retournez à l’application et recommencez.
error-used = Une réponse a déjà été donnée à cette demande
error-used-text = On ne peut répondre qu’une fois à chaque demande. Retournez à l’application et, si nécessaire, recommencez.
error-disabled = Cette application est désactivée
error-disabled-text = Elle ne peut pas demander d’accès pour l’instant.
error-ended = Il n’est plus possible d’autoriser l’accès de cette façon
error-ended-text = Cette application doit changer avant de pouvoir demander à nouveau l’accès. L’accès que vous avez autorisé auparavant est conservé. Adressez-vous au développeur de l’application.
error-callback = Il n’est pas possible de répondre à cette demande
error-callback-text = L’adresse vers laquelle l’application veut vous envoyer n’est pas enregistrée pour elle.
error-no-application = Application introuvable
error-no-application-text = Son accès a peut-être déjà été révoqué. Rien n’a été modifié.
error-link = Ce lien ne fonctionne pas
error-link-text = Il a pris fin ou n’a jamais été valable. Demandez-en un autre à l’exploitant du service.
error-password = Votre mot de passe a changé entre-temps
error-password-text = Il a été changé depuis que vous avez ouvert le formulaire, par vous dans un autre navigateur ou par l’administrateur. Rien n’a été modifié ici. Connectez-vous avec le nouveau mot de passe.
error-nobody = Vous n’êtes pas connecté
error-nobody-text = Connectez-vous sur le site d’où vous venez, puis ouvrez de nouveau cette page.
error-not-admitted = Votre compte ne permet pas de se connecter ici
error-not-admitted-text = Il est désactivé ici, ou en conflit avec un autre compte. Adressez-vous aux responsables de ce service.
error-unavailable = Veuillez réessayer
error-unavailable-text = Le service ne peut pas répondre pour le moment. Réessayez dans quelques secondes.
error-wait = Réessayez dans { $wait }.
error-fault = Une erreur s’est produite
error-fault-text = L’erreur est de notre côté.
error-login = Se connecter
error-login-text = Vous devez vous connecter pour voir cette page.
error-unproved = Cette adresse est réservée aux applications
error-unproved-text = Les programmes l’appellent avec une requête signée. Cherchiez-vous vos applications connectées ?
error-signature = La signature est incorrecte
error-signature-text = Un programme a envoyé une requête signée. Son développeur en trouve ici la raison.
error-forbidden = Non autorisé
error-forbidden-text = Cela ne vous est pas permis, ou vous venez d’un autre site. Ouvrez la page depuis ce site.
error-not-found = Introuvable
error-not-found-text = Il n’y a rien à cette adresse. Vérifiez qu’elle est bien écrite.
error-slow = Délai dépassé
error-slow-text = La requête a pris trop de temps. Réessayez.
error-large = Requête trop volumineuse
error-large-text = Envoyez moins de données à la fois.
error-misdirected = Mauvaise adresse
error-misdirected-text = Ce service se trouve à une autre adresse.
error-rate = Trop de requêtes
error-rate-text = Attendez un instant et réessayez.
error-upstream = Indisponible
error-upstream-text = Le service ne répond pas. Réessayez dans quelques minutes.
error-request-broken = Requête incorrecte
error-request-broken-text = Ce qui a été envoyé est illisible. Ouvrez de nouveau la page.
