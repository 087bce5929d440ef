language-name = Português (Brasil)
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

login-title = Entrar em { $service }
login-to-decide = Entre para continuar para { $consumer }.
login-name = Nome de usuário
login-password = Senha
login-submit = Entrar
login-recovery = Esqueceu a senha?
login-fields-missing = Digite seu nome de usuário e sua senha.
login-wrong = O nome de usuário ou a senha está incorreto.
login-throttled = Houve muitas tentativas incorretas. Tente novamente em { $wait }.
login-busy = Há muitos acessos neste momento. Tente novamente em alguns segundos.
login-unavailable = O serviço não consegue verificar sua senha agora. Tente novamente em alguns segundos.

consent-title = { $consumer } pede acesso à sua conta de { $service }
consent-user = Sua conta: { $user }
consent-not-you = Não é você?
consent-switch = Entrar com outra conta
consent-earlier = Você já permitiu isso em { $date }.
consent-more = { $count ->
    [one] Agora ele pede { $count } item a mais, marcado como “novo”.
   *[other] Agora ele pede { $count } itens a mais, marcados como “novo”.
}
consent-nothing-new = O aplicativo não pede nada de novo.
consent-permissions = Se você permitir, o aplicativo poderá
consent-identity = Saber quem você é
consent-identity-name = seu nome de usuário e seu identificador
consent-identity-full = seu nome, seu nome de usuário e seu identificador
consent-calls = Agir em seu nome no que não exige nenhuma permissão especial
consent-new = novo
consent-sensitive = delicado
consent-sum = { $count } permissões, { $sensitive ->
    [one] { $sensitive } delicada
   *[other] { $sensitive } delicadas
}
consent-sensitive-count = { $count ->
    [one] { $count } deles é delicado.
   *[other] { $count } deles são delicados.
}
consent-developer = O nome e a descrição são do desenvolvedor e não são verificados por { $service }.
consent-developer-name = O nome é do desenvolvedor e não é verificado por { $service }.
consent-since = registrado em { $date }
consent-to-site = Qualquer que seja sua escolha, você voltará para { $site }.
consent-to-scheme = Qualquer que seja sua escolha, em seguida será aberto um aplicativo deste dispositivo que abre links { $scheme }.
consent-to-code = Se você permitir, receberá um código para digitar no aplicativo.
consent-allow = Permitir
consent-deny = Negar
consent-password = O aplicativo nunca vê sua senha.
consent-holds = O acesso vale até que você o remova em { $page }.
consent-holds-for = O acesso vale por { $duration }, ou até que você o remova em { $page }.
consent-ends-unused = Termina antes se ficar { $duration } sem uso.
consent-remembered = Até lá, não perguntaremos de novo sobre o mesmo acesso.
consent-continue = Continuar
consent-continue-to = Continuar para { $site }

verifier-title = Você deu permissão a { $consumer }
verifier-type = Digite este código no aplicativo:
verifier-lifetime = Ele vale por { $lifetime } e só funciona uma vez. Não o compartilhe com ninguém. Feche esta página assim que o aplicativo aceitar o código.
verifier-taken = { $consumer } recebeu o código
verifier-taken-text = Você pode fechar esta página.

denied-title = Você negou o acesso a { $consumer }
denied-text = O aplicativo não pode agir em seu nome. Você pode fechar esta página.
denied-still = { $consumer } ainda pode agir em seu nome com o acesso que já tinha.

applications-title = Aplicativos conectados
applications-text = Estes aplicativos podem agir em seu nome. O acesso que você remover aqui termina imediatamente.
applications-log-out = Sair
applications-withdrawn = { $consumer } não pode mais agir em seu nome.
applications-none = Você não conectou nenhum aplicativo.
applications-none-here = Entre estes, nenhum aplicativo pode agir em seu nome.
applications-permissions = { $count ->
    [one] { $count } permissão
   *[other] { $count } permissões
}
applications-allowed = Permitido em { $date }
applications-given = Concedido pelo operador em { $date }
applications-own = Seu próprio token de acesso, criado em { $date }
applications-used = usado pela última vez em { $date }
applications-unused = não usado, ou só agora há pouco
applications-withdraw = Remover o acesso
applications-more = Mais
applications-connections = { $count ->
    [one] { $count } conexão
   *[other] { $count } conexões
}

withdraw-title = Remover o acesso de { $consumer }?
withdraw-text = O aplicativo não poderá mais agir em seu nome em nenhum dos seus dispositivos.
withdraw-cancel = Manter o acesso

sessions-title = Sessões abertas
sessions-browser = { $browser } em { $system }
sessions-unknown = Navegador desconhecido
sessions-this = Este navegador
sessions-since = desde { $date }, pelo endereço { $address }
sessions-open = { $count ->
    [one] { $count } navegador
   *[other] { $count } navegadores
}
sessions-all = Todos os { $count } navegadores
sessions-others = Sair de todos os outros lugares
sessions-end = Sair de todos os lugares

logout-title = Sair de { $service }?
logout-text = Você terá de entrar de novo neste navegador.
logout-others-title = Sair de todos os outros lugares?
logout-others-text = Sua sessão continua aqui. Em todos os outros navegadores, você terá de entrar de novo.
logout-all-title = Sair de todos os lugares?
logout-all-text = Você terá de entrar de novo em todos os navegadores, inclusive neste.
logout-applications = Os aplicativos conectados mantêm o acesso.
logout-cancel = Continuar aqui

notice-out = Você saiu.
notice-out-all = Você saiu de todos os lugares.
notice-out-others = Você saiu de todos os outros lugares.
notice-out-one = A sessão desse navegador foi encerrada.

password-title = Alterar a senha
password-rule = { $count ->
    [one] Use pelo menos { $count } caractere.
   *[other] Use pelo menos { $count } caracteres.
}
password-text = Todos os seus outros navegadores serão desconectados. Os aplicativos que podem agir em seu nome continuam podendo.
password-must-change = Um operador definiu sua senha. Escolha outra, que só você conheça, para continuar.
password-current = Senha atual
password-new = Nova senha
password-again = Repita a nova senha
password-changed = Sua senha foi alterada e todos os seus outros navegadores foram desconectados.
password-fields-missing = Preencha os três campos.
password-differs = As duas senhas novas são diferentes.
password-wrong = A senha atual está incorreta.
password-short = A nova senha é curta demais.
password-long = A nova senha é longa demais.
password-same = A nova senha é igual à atual.
password-name = A nova senha não pode ser o seu nome.
password-common = A nova senha é uma das mais comuns, que são as primeiras a ser tentadas. Escolha outra.

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

footer-terms = Termos de uso
footer-privacy = Privacidade
footer-help = Ajuda
footer-language = Idioma

refusal-consumer = O aplicativo é { $consumer }.
refusal-back = Voltar para { $site }
refusal-developers = Para desenvolvedores
refusal-docs = Mais sobre este erro

launch-title = A atividade não abriu
launch-text = Abra-a novamente a partir do seu curso.
launch-busy = Espere um momento e abra-a novamente a partir do seu curso.
launch-reference = Se isso não ajudar, informe esta referência ao seu professor:
launch-administrator = Para o administrador
launch-message = { launch-title }. { launch-text } { launch-reference } { $reference }

developer-title = Chamadas rejeitadas de { $consumer }
developer-text = Para os desenvolvedores deste aplicativo: quais chamadas { $service } rejeitou e por quê. Nenhum segredo é mostrado aqui.
developer-until = Esta página termina em { $time }. Quem tiver o endereço pode lê-la: não o repasse.
developer-process = Ela mostra o que um processo do serviço viu desde { $time }. Se houver vários, outro pode ter visto mais: recarregue a página.
developer-why = Por que chamadas foram rejeitadas
developer-none = Nenhuma chamada foi rejeitada.
developer-calls-count = { $count ->
    [one] { $count } chamada
   *[other] { $count } chamadas
}
developer-proof-verified = A assinatura está correta.
developer-proof-secrets = A assinatura está incorreta e foi feita com os seus segredos.
developer-proof-none = Não comprovado: qualquer pessoa pode enviar a sua chave.
developer-previous = A última está assinada com o seu segredo anterior, que vai terminar.
developer-previous-until = Está assinada com o seu segredo anterior, que termina em { $time }.
developer-observed = Estas chamadas passaram. Serão rejeitadas quando as assinaturas forem exigidas.
developer-base-strings = Textos-base da última
developer-hidden = Letras e números de valores e caminhos aparecem como x. As diferenças estão marcadas.
developer-right = Texto-base correto
developer-signed = Texto-base assinado
developer-last = Últimas chamadas
developer-check = Verificar uma requisição
developer-check-text = Cole uma requisição como foi transmitida, ou um comando curl, ou o texto-base que a sua biblioteca assinou, ou ambos. A requisição não é encaminhada nem guardada, e nenhum segredo é mostrado.
developer-request = Requisição
developer-base-string = Texto-base que a sua biblioteca assinou
developer-submit = Verificar
developer-check-right = A assinatura está correta. Aqui não se verifica se o nonce já foi usado nem se a chamada é permitida.
developer-check-wrong = Esta requisição é rejeitada.
developer-check-unknown = A assinatura está incorreta e nenhum erro conhecido a produz: compare o segredo do aplicativo, o do token e os textos-base.
developer-check-well-formed = O texto-base está bem formado. Se é o da sua requisição, só a requisição diz.
developer-check-differs = O texto-base não está bem formado. As diferenças estão marcadas.
developer-check-nothing = Cole uma requisição ou um texto-base.
developer-check-unreadable = Isto não pode ser lido.
developer-check-other = Esta requisição nomeia outro aplicativo.
developer-check-busy = Há requisições demais sendo verificadas no momento. Tente novamente em alguns segundos.

collections-text = Requisições para experimentar, para Bruno e Postman. O arquivo não contém nenhum segredo: escreva o seu nas variáveis.

register-title = As chaves dos seus aplicativos
register-text = Com uma chave própria, um aplicativo que você escreve pode chamar { $service }.
register-none = Você não tem nenhuma chave.
register-manage = Gerenciar
register-new = Uma chave nova
register-name = Nome do aplicativo
register-description = Para que serve
register-website = Site (opcional)
register-contact = Contato: um endereço de e-mail ou uma página da web
register-callbacks = Callbacks, um por linha; oob para um programa sem página da web
register-permissions = Permissões de que precisa
register-submit = Pedir a chave
register-approval = Um operador de { $service } decide sobre cada chave. Ela funciona assim que for aprovada.
register-sensitive = Um operador de { $service } decide sobre uma chave com uma permissão sensível. As outras funcionam na hora.
register-key = Chave
register-secret = Segredo
register-made = A chave de { $consumer }
register-once = Copie o segredo agora. Ele não será mostrado de novo.
register-waiting = Aguarda aprovação
register-works = Funciona
register-declined = Recusada
register-disabled = Desativada
register-said = O operador escreveu: { $text }
register-asked = Estes callbacks aguardam aprovação:
register-rotate = Criar um novo segredo
register-grace = O segredo antigo funciona por mais 24 horas
register-change = Alterar os callbacks
register-rejections = Ver as chamadas rejeitadas
register-end = Encerrar a chave
register-keep = Manter a chave
register-end-title = Encerrar a chave de { $consumer }?
register-end-text = Todo o acesso dele termina na hora, para todos os usuários. A chave não pode ser recuperada.
register-token = Criar um token de acesso para você
register-token-title = Seu token de acesso de { $consumer }
register-token-text = Com ele, o aplicativo age em seu nome como se você tivesse permitido. Um novo encerra o anterior; você também pode encerrá-lo na página de aplicativos conectados.
register-token-permits = Ele poderá
register-token-name = Token de acesso
register-invalid = Corrija isto e envie de novo:
register-taken = Outro aplicativo tem este nome. Escolha outro.
register-too-many = Há chaves demais no momento. Encerre uma de que não precisa, ou tente de novo amanhã.
register-ended = Não são mais emitidas chaves novas aqui.

error-again = Começar de novo
error-try-again = Tentar novamente
error-request = Referência
error-method = Esta página não pode ser aberta assim
error-method-text = Use o botão ou o link deste site.
error-malformed = Este link não funciona
error-malformed-no-request = Ele não indica nenhum pedido. Volte ao aplicativo e comece de novo.
error-malformed-twice = Ele indica algo duas vezes.
error-malformed-permission = Ele indica uma permissão que o aplicativo não pode pedir.
error-malformed-decision = O formulário que seu navegador enviou não contém nenhuma decisão.
error-malformed-form = Não foi possível ler o formulário que seu navegador enviou.
error-malformed-user = O proxy à frente deste serviço não indica um único usuário.
error-two-sessions = Duas sessões ao mesmo tempo
error-two-sessions-text = Seu navegador enviou dois cookies de sessão para este site, e não é possível saber qual é o seu. Apague os cookies deste site e tente novamente.
error-forged = Este formulário não foi aceito
error-forged-text = Ele não veio de uma página deste site. Nada foi alterado.
error-stale = Este formulário está desatualizado
error-stale-in = Você entrou novamente depois que este formulário foi exibido. Nada foi alterado.
error-stale-out = Sua sessão foi encerrada depois que este formulário foi exibido. Nada foi alterado.
error-stale-old = A página ficou aberta por tempo demais. Nada foi alterado.
error-cookie = Seu navegador não enviou nenhum cookie
error-cookie-text = Este formulário só funciona com um cookie deste site, que contém apenas um número aleatório. Permita cookies deste site e comece de novo.
error-unknown = Não reconhecemos este link
error-unknown-text = O link do aplicativo não é válido. Volte ao aplicativo e comece de novo.
error-expired = Este pedido expirou
error-expired-text = O prazo terminou. Volte ao aplicativo e comece de novo.
error-used = Este pedido já foi respondido
error-used-text = Cada pedido só pode ser respondido uma vez. Volte ao aplicativo e, se necessário, comece de novo por lá.
error-disabled = Este aplicativo está desativado
error-disabled-text = Ele não pode pedir acesso agora.
error-ended = Não é mais possível permitir o acesso desta forma
error-ended-text = Este aplicativo precisa mudar antes de poder pedir acesso novamente. O acesso que você permitiu antes continua. Fale com o desenvolvedor do aplicativo.
error-callback = Não é possível responder a este pedido
error-callback-text = O endereço para o qual o aplicativo quer enviar você não está registrado para ele.
error-no-application = Aplicativo não encontrado
error-no-application-text = Talvez o acesso dele já tenha sido removido. Nada foi alterado.
error-link = Este link não funciona
error-link-text = Ele terminou ou nunca foi válido. Peça outro ao operador do serviço.
error-password = Sua senha foi alterada nesse meio-tempo
error-password-text = Ela mudou desde que você abriu o formulário: por você em outro navegador ou pelo operador. Nada foi alterado aqui. Entre com a nova senha.
error-nobody = Você não entrou na sua conta
error-nobody-text = Entre na sua conta no lugar de onde veio e depois abra esta página de novo.
error-not-admitted = Sua conta não pode entrar aqui
error-not-admitted-text = Ela está desativada aqui ou em conflito com outra. Fale com os responsáveis por este serviço.
error-unavailable = Tente novamente
error-unavailable-text = O serviço não consegue responder agora. Tente novamente em alguns segundos.
error-wait = Tente novamente em { $wait }.
error-fault = Algo deu errado
error-fault-text = A falha é do nosso lado.
error-login = Entrar
error-login-text = Você precisa entrar na sua conta para ver esta página.
error-unproved = Este endereço é para aplicativos
error-unproved-text = Os programas o usam com uma requisição assinada. Você procurava seus aplicativos conectados?
error-signature = A assinatura está incorreta
error-signature-text = Um programa enviou uma requisição assinada. O desenvolvedor encontra o motivo aqui.
error-forbidden = Não permitido
error-forbidden-text = Você não pode fazer isso ou veio de outro site. Abra a página a partir deste site.
error-not-found = Não encontrado
error-not-found-text = Não há nada neste endereço. Verifique se ele está escrito corretamente.
error-slow = Tempo esgotado
error-slow-text = A requisição demorou demais. Tente novamente.
error-large = Requisição grande demais
error-large-text = Envie menos de uma vez.
error-misdirected = Endereço errado
error-misdirected-text = Este serviço está em outro endereço.
error-rate = Muitas requisições
error-rate-text = Espere um momento e tente novamente.
error-upstream = Indisponível
error-upstream-text = O serviço não responde. Tente novamente em alguns minutos.
error-request-broken = Requisição inválida
error-request-broken-text = Não é possível ler o que foi enviado. Abra a página novamente.
