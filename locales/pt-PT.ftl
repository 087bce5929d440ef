language-name = Português (Portugal)
title-error = Erro:
date-words = { $day } de { $month ->
    [1] janeiro
    [2] fevereiro
    [3] março
    [4] abril
    [5] maio
    [6] junho
    [7] julho
    [8] agosto
    [9] setembro
    [10] outubro
    [11] novembro
   *[12] dezembro
} de { $year }

login-title = Iniciar sessão em { $service }
login-to-decide = Inicie sessão para continuar para { $consumer }.
login-name = Nome de utilizador
login-password = Palavra-passe
login-submit = Iniciar sessão
login-recovery = Esqueceu-se da palavra-passe?
login-fields-missing = Introduza o nome de utilizador e a palavra-passe.
login-wrong = O nome de utilizador ou a palavra-passe está incorreto.
login-throttled = Houve demasiadas tentativas falhadas. Tente novamente dentro de { $wait }.
login-busy = Há demasiadas pessoas a iniciar sessão neste momento. Tente novamente dentro de alguns segundos.
login-unavailable = Neste momento, o serviço não consegue verificar a sua palavra-passe. Tente novamente dentro de alguns segundos.

consent-title = { $consumer } pede acesso à sua conta de { $service }
consent-user = A sua conta: { $user }
consent-not-you = Não é a sua conta?
consent-switch = Iniciar sessão com outra conta
consent-earlier = Já o permitiu em { $date }.
consent-more = { $count ->
    [one] Agora pede mais { $count } coisa, marcada com «novo».
   *[other] Agora pede mais { $count } coisas, marcadas com «novo».
}
consent-nothing-new = A aplicação não pede nada de novo.
consent-permissions = Se permitir, a aplicação poderá
consent-identity = Saber quem é
consent-identity-name = o seu nome de utilizador e o seu identificador
consent-identity-full = o seu nome, o seu nome de utilizador e o seu identificador
consent-calls = Agir em seu nome no que não exige nenhuma permissão especial
consent-new = novo
consent-sensitive = sensível
consent-sum = { $count } permissões, { $sensitive ->
    [one] { $sensitive } sensível
   *[other] { $sensitive } sensíveis
}
consent-sensitive-count = { $count ->
    [one] { $count } destes é sensível.
   *[other] { $count } destes são sensíveis.
}
consent-developer = O nome e a descrição são do programador e não são verificados por { $service }.
consent-developer-name = O nome é do programador e não é verificado por { $service }.
consent-since = registada em { $date }
consent-to-site = Seja qual for a sua escolha, regressa a { $site }.
consent-to-scheme = Seja qual for a sua escolha, em seguida abre-se uma aplicação deste dispositivo que abre ligações { $scheme }.
consent-to-code = Se permitir, recebe um código para escrever na aplicação.
consent-allow = Permitir
consent-deny = Recusar
consent-password = A aplicação nunca vê a sua palavra-passe.
consent-holds = O acesso é válido até o remover em { $page }.
consent-holds-for = O acesso é válido durante { $duration }, ou até o remover em { $page }.
consent-ends-unused = Termina antes se não for utilizado durante { $duration }.
consent-remembered = Até lá, não lhe perguntaremos de novo sobre o mesmo acesso.
consent-continue = Continuar
consent-continue-to = Continuar para { $site }

verifier-title = Permitiu o acesso a { $consumer }
verifier-type = Escreva este código na aplicação:
verifier-lifetime = É válido durante { $lifetime } e só funciona uma vez. Não o partilhe com ninguém. Feche esta página assim que a aplicação o aceitar.
verifier-taken = { $consumer } recebeu o código
verifier-taken-text = Pode fechar esta página.

denied-title = Recusou o acesso a { $consumer }
denied-text = A aplicação não pode agir em seu nome. Pode fechar esta página.
denied-still = { $consumer } ainda pode agir em seu nome com o acesso que já tinha.

applications-title = Aplicações ligadas
applications-text = Estas aplicações podem agir em seu nome. O acesso que remover aqui termina imediatamente.
applications-log-out = Terminar sessão
applications-withdrawn = { $consumer } já não pode agir em seu nome.
applications-none = Não ligou nenhuma aplicação.
applications-none-here = Entre estas, nenhuma aplicação pode agir em seu nome.
applications-permissions = { $count ->
    [one] { $count } permissão
   *[other] { $count } permissões
}
applications-allowed = Permitida em { $date }
applications-given = Concedido pelo operador em { $date }
applications-own = O seu próprio token de acesso, criado em { $date }
applications-used = utilizada pela última vez em { $date }
applications-unused = não utilizado, ou só há instantes
applications-withdraw = Remover o acesso
applications-more = Mais
applications-connections = { $count ->
    [one] { $count } ligação
   *[other] { $count } ligações
}

withdraw-title = Remover o acesso de { $consumer }?
withdraw-text = A aplicação deixa de poder agir em seu nome em todos os seus dispositivos.
withdraw-cancel = Manter o acesso

sessions-title = Sessões abertas
sessions-browser = { $browser } em { $system }
sessions-unknown = Navegador desconhecido
sessions-this = Este navegador
sessions-since = desde { $date }, a partir do endereço { $address }
sessions-open = { $count ->
    [one] { $count } navegador
   *[other] { $count } navegadores
}
sessions-all = Todos os { $count } navegadores
sessions-others = Terminar as outras sessões
sessions-end = Terminar todas as sessões

logout-title = Terminar a sessão em { $service }?
logout-text = Terá de iniciar sessão novamente neste navegador.
logout-others-title = Terminar as outras sessões?
logout-others-text = A sua sessão continua aberta aqui. Em todos os outros navegadores terá de iniciar sessão novamente.
logout-all-title = Terminar todas as sessões?
logout-all-text = Terá de iniciar sessão novamente em todos os navegadores, incluindo este.
logout-applications = As aplicações ligadas mantêm o acesso.
logout-cancel = Manter a sessão

notice-out = A sessão foi terminada.
notice-out-all = Todas as sessões foram terminadas.
notice-out-others = As outras sessões foram terminadas.
notice-out-one = A sessão desse navegador foi terminada.

password-title = Alterar a palavra-passe
password-rule = { $count ->
    [one] Utilize pelo menos { $count } carácter.
   *[other] Utilize pelo menos { $count } caracteres.
}
password-text = A sessão será terminada em todos os seus outros navegadores. As aplicações que podem agir em seu nome mantêm o acesso.
password-must-change = Um operador definiu a sua palavra-passe. Escolha outra, que só você conheça, para continuar.
password-current = Palavra-passe atual
password-new = Nova palavra-passe
password-again = Repita a nova palavra-passe
password-changed = A palavra-passe foi alterada e a sessão foi terminada em todos os outros navegadores.
password-fields-missing = Preencha os três campos.
password-differs = As duas palavras-passe novas são diferentes.
password-wrong = A palavra-passe atual está incorreta.
password-short = A nova palavra-passe é demasiado curta.
password-long = A nova palavra-passe é demasiado longa.
password-same = A nova palavra-passe é igual à atual.
password-name = A nova palavra-passe não pode ser o seu nome.
password-common = A nova palavra-passe é uma das mais comuns, que são as primeiras a ser experimentadas. Escolha outra.

duration-seconds = { $count ->
    [one] { $count } segundo
   *[other] { $count } segundos
}
duration-minutes = { $count ->
    [one] { $count } minuto
   *[other] { $count } minutos
}
duration-hours = { $count ->
    [one] { $count } hora
   *[other] { $count } horas
}
duration-days = { $count ->
    [one] { $count } dia
   *[other] { $count } dias
}

footer-terms = Termos de utilização
footer-privacy = Privacidade
footer-help = Ajuda
footer-language = Idioma

refusal-consumer = A aplicação é { $consumer }.
refusal-back = Voltar a { $site }
refusal-developers = Para programadores
refusal-docs = Mais sobre este erro

launch-title = A atividade não abriu
launch-text = Abra-a novamente a partir do seu curso.
launch-busy = Aguarde um momento e abra-a novamente a partir do seu curso.
launch-reference = Se isso não ajudar, indique esta referência ao seu professor:
launch-administrator = Para o administrador
launch-message = { launch-title }. { launch-text } { launch-reference } { $reference }

developer-title = Chamadas rejeitadas de { $consumer }
developer-text = Para os programadores desta aplicação: que chamadas { $service } rejeitou e porquê. Aqui não é mostrado nenhum segredo.
developer-until = Esta página termina em { $time }. Quem tiver o endereço pode lê-la: não o partilhe.
developer-process = Mostra o que um processo do serviço viu desde { $time }. Se houver vários, outro pode ter visto mais: recarregue a página.
developer-why = Porque foram rejeitadas chamadas
developer-none = Nenhuma chamada foi rejeitada.
developer-calls-count = { $count ->
    [one] { $count } chamada
   *[other] { $count } chamadas
}
developer-proof-verified = A assinatura está correta.
developer-proof-secrets = A assinatura está incorreta e foi feita com os seus segredos.
developer-proof-none = Não provado: qualquer pessoa pode enviar a sua chave.
developer-previous = A última está assinada com o seu segredo anterior, que vai terminar.
developer-previous-until = Está assinado com o seu segredo anterior, que termina em { $time }.
developer-observed = Estas chamadas passaram. Serão rejeitadas assim que as assinaturas forem exigidas.
developer-base-strings = Textos de base da última
developer-hidden = As letras e os algarismos de valores e caminhos são mostrados como x. As diferenças estão assinaladas.
developer-right = Texto de base correto
developer-signed = Texto de base assinado
developer-last = Últimas chamadas
developer-check = Verificar um pedido
developer-check-text = Cole um pedido tal como foi transmitido, ou um comando curl, ou o texto de base que a sua biblioteca assinou, ou ambos. O pedido não é reencaminhado nem guardado, e não é mostrado nenhum segredo.
developer-request = Pedido
developer-base-string = Texto de base que a sua biblioteca assinou
developer-submit = Verificar
developer-check-right = A assinatura está correta. Aqui não se verifica se o nonce já foi usado nem se a chamada é permitida.
developer-check-wrong = Este pedido é rejeitado.
developer-check-unknown = A assinatura está incorreta e nenhum erro conhecido a produz: compare o segredo da aplicação, o do token e os textos de base.
developer-check-well-formed = O texto de base está bem formado. Se é o do seu pedido, só o pedido o diz.
developer-check-differs = O texto de base não está bem formado. As diferenças estão assinaladas.
developer-check-nothing = Cole um pedido ou um texto de base.
developer-check-unreadable = Isto não pode ser lido.
developer-check-other = Este pedido nomeia outra aplicação.
developer-check-busy = Neste momento estão a ser verificados demasiados pedidos. Tente novamente dentro de alguns segundos.

collections-text = Pedidos para experimentar, para Bruno e Postman. O ficheiro não contém nenhum segredo: escreva o seu nas variáveis.

register-title = As chaves das suas aplicações
register-text = Com uma chave própria, uma aplicação que escreva pode chamar { $service }.
register-none = Não tem nenhuma chave.
register-manage = Gerir
register-new = Uma chave nova
register-name = Nome da aplicação
register-description = Para que serve
register-website = Sítio web (opcional)
register-contact = Contacto: um endereço de correio eletrónico ou uma página web
register-callbacks = Callbacks, um por linha; oob para um programa sem página web
register-permissions = Permissões de que precisa
register-submit = Pedir a chave
register-approval = Um operador de { $service } decide sobre cada chave. Funciona assim que for aprovada.
register-sensitive = Um operador de { $service } decide sobre uma chave com uma permissão sensível. As outras funcionam de imediato.
register-key = Chave
register-secret = Segredo
register-made = A chave de { $consumer }
register-once = Copie o segredo agora. Não volta a ser mostrado.
register-waiting = Aguarda aprovação
register-works = Funciona
register-declined = Recusada
register-disabled = Desativada
register-said = O operador escreveu: { $text }
register-asked = Estes callbacks aguardam aprovação:
register-rotate = Criar um segredo novo
register-grace = O segredo antigo funciona mais 24 horas
register-change = Alterar os callbacks
register-rejections = Ver as chamadas rejeitadas
register-end = Terminar a chave
register-keep = Manter a chave
register-end-title = Terminar a chave de { $consumer }?
register-end-text = Todo o acesso dela termina de imediato, para todos os utilizadores. A chave não pode ser recuperada.
register-token = Criar um token de acesso para si
register-token-title = O seu token de acesso de { $consumer }
register-token-text = Com ele, a aplicação age em seu nome como se o tivesse permitido. Um novo termina o anterior; também pode terminá-lo na página de aplicações ligadas.
register-token-permits = Poderá
register-token-name = Token de acesso
register-invalid = Corrija isto e envie de novo:
register-taken = Outra aplicação tem este nome. Escolha outro.
register-too-many = Há demasiadas chaves neste momento. Termine uma de que não precisa, ou tente de novo amanhã.
register-ended = Já não são emitidas chaves novas aqui.

error-again = Começar de novo
error-try-again = Tentar novamente
error-request = Referência
error-method = Esta página não pode ser aberta assim
error-method-text = Utilize o botão ou a ligação deste site.
error-malformed = Esta ligação não funciona
error-malformed-no-request = A ligação está incompleta. Volte à aplicação e comece de novo.
error-malformed-twice = Indica algo duas vezes.
error-malformed-permission = Indica uma permissão que a aplicação não pode pedir.
error-malformed-decision = O formulário enviado pelo seu navegador não contém nenhuma decisão.
error-malformed-form = Não foi possível ler o formulário enviado pelo seu navegador.
error-malformed-user = O proxy à frente deste serviço não indica um único utilizador.
error-two-sessions = Duas sessões ao mesmo tempo
error-two-sessions-text = O seu navegador enviou dois cookies de sessão para este site e não é possível saber qual é o seu. Apague os cookies deste site e tente novamente.
error-forged = Este formulário não foi aceite
error-forged-text = Não veio de uma página deste site. Nada foi alterado.
error-stale = Este formulário está desatualizado
error-stale-in = Iniciou sessão novamente depois de este formulário ter sido apresentado. Nada foi alterado.
error-stale-out = A sua sessão foi terminada depois de este formulário ter sido apresentado. Nada foi alterado.
error-stale-old = A página esteve aberta demasiado tempo. Nada foi alterado.
error-cookie = O seu navegador não enviou nenhum cookie
error-cookie-text = Este formulário só funciona com um cookie deste site, que contém apenas um número aleatório. Permita os cookies deste site e comece de novo.
error-unknown = Não reconhecemos esta ligação
error-unknown-text = A ligação da aplicação não é válida. Volte à aplicação e comece de novo.
error-expired = Este pedido expirou
error-expired-text = O prazo terminou. Volte à aplicação e comece de novo.
error-used = Este pedido já foi respondido
error-used-text = Cada pedido só pode ser respondido uma vez. Volte à aplicação e, se necessário, comece lá de novo.
error-disabled = Esta aplicação está desativada
error-disabled-text = Não pode pedir acesso neste momento.
error-ended = Já não é possível permitir o acesso desta forma
error-ended-text = Esta aplicação tem de mudar antes de poder voltar a pedir acesso. O acesso que permitiu antes mantém-se. Fale com o programador da aplicação.
error-callback = Não é possível responder a este pedido
error-callback-text = O endereço para o qual a aplicação o quer enviar não está registado para ela.
error-no-application = Aplicação não encontrada
error-no-application-text = O acesso talvez já tenha sido removido. Nada foi alterado.
error-link = Esta ligação não funciona
error-link-text = Terminou ou nunca foi válida. Peça outra ao operador do serviço.
error-password = A sua palavra-passe foi entretanto alterada
error-password-text = Foi alterada depois de ter aberto o formulário: por si noutro navegador ou pelo operador. Aqui nada foi alterado. Inicie sessão com a nova palavra-passe.
error-nobody = Não tem sessão iniciada
error-nobody-text = Inicie sessão no site de onde veio e depois volte a abrir esta página.
error-not-admitted = A sua conta não pode iniciar sessão aqui
error-not-admitted-text = Está desativada aqui ou em conflito com outra. Contacte os responsáveis por este serviço.
error-unavailable = Tente novamente
error-unavailable-text = Neste momento, o serviço não consegue responder. Tente novamente dentro de alguns segundos.
error-wait = Tente novamente dentro de { $wait }.
error-fault = Ocorreu um erro
error-fault-text = A falha é do nosso lado.
error-login = Iniciar sessão
error-login-text = Tem de iniciar sessão para ver esta página.
error-unproved = Este endereço é para aplicações
error-unproved-text = Os programas utilizam-no com um pedido assinado. Procurava as suas aplicações ligadas?
error-signature = A assinatura está incorreta
error-signature-text = Um programa enviou um pedido assinado. O programador encontra aqui o motivo.
error-forbidden = Não permitido
error-forbidden-text = Não pode fazer isto ou veio de outro site. Abra a página a partir deste site.
error-not-found = Não encontrado
error-not-found-text = Não há nada neste endereço. Verifique se está bem escrito.
error-slow = Tempo esgotado
error-slow-text = O pedido demorou demasiado tempo. Tente novamente.
error-large = Pedido demasiado grande
error-large-text = Envie menos de cada vez.
error-misdirected = Endereço errado
error-misdirected-text = Este serviço está noutro endereço.
error-rate = Demasiados pedidos
error-rate-text = Aguarde um momento e tente novamente.
error-upstream = Indisponível
error-upstream-text = O serviço não responde. Tente novamente dentro de alguns minutos.
error-request-broken = Pedido inválido
error-request-broken-text = Não é possível ler o que foi enviado. Abra a página de novo.
