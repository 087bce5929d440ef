login-title = Entrar
login-to-decide = Entre para responder à solicitação de { $consumer }.
login-to-account = Entre na sua conta.
login-name = Nome de usuário
login-password = Senha
login-submit = Entrar
login-fields-missing = Digite seu nome de usuário e sua senha.
login-wrong = O nome de usuário ou a senha está incorreto.
login-throttled = Houve muitas tentativas incorretas. Tente novamente em { $wait }.
login-busy = Há muitos acessos neste momento. Tente novamente em alguns segundos.
login-unavailable = O serviço não consegue verificar sua senha agora. Tente novamente em alguns segundos.

consent-title = Permitir que { $consumer } aja em seu nome?
consent-user = Sua conta: { $user }
consent-identity-only = { $consumer } saberá quem você é e poderá fazer em seu nome chamadas que não exigem nenhuma permissão especial.
consent-permissions = { $consumer } saberá quem você é e poderá:
consent-allow = Permitir
consent-deny = Negar
consent-to-site = Em ambos os casos, você voltará depois para { $site }.
consent-to-application = Em ambos os casos, você voltará depois para o aplicativo.
consent-to-code = Se você permitir, será mostrado um código para digitar no aplicativo.
consent-withdraw = O aplicativo nunca vê sua senha, e você pode retirar sua permissão a qualquer momento.
consent-continue = Continuar
consent-not-you = Não é você?
consent-switch = Entrar com outra conta

verifier-title = Você deu permissão a { $consumer }
verifier-type = Digite este código no aplicativo:
verifier-lifetime = Ele vale por { $lifetime } e só funciona uma vez. Não o compartilhe com ninguém. Depois, você pode fechar esta página.

denied-title = Você negou o acesso a { $consumer }
denied-text = O aplicativo não pode agir em seu nome. Você pode fechar esta página.

applications-title = Aplicativos conectados
applications-link = Aplicativos que podem agir em seu nome
applications-text = Estes aplicativos podem agir em seu nome. O que você retirar aqui termina imediatamente.
applications-log-out = Sair
applications-withdrawn = { $consumer } não pode mais agir em seu nome.
applications-none = Nenhum aplicativo pode agir em seu nome.
applications-none-here = Entre estes, nenhum aplicativo pode agir em seu nome.
applications-allowed = Permitido em { $date }
applications-used = usado pela última vez em { $date }
applications-unused = ainda não usado
applications-withdraw = Remover o acesso
applications-withdraw-label = Remover o acesso de { $consumer }
applications-more = Mais
applications-connections = { $count ->
    [one] { $count } conexão
   *[other] { $count } conexões
}

withdraw-title = Remover o acesso de { $consumer }?
withdraw-text = O aplicativo não poderá mais agir em seu nome em nenhum dos seus dispositivos.
withdraw-cancel = Manter o acesso

sessions-title = Onde você está conectado
sessions-open = { $count ->
    [one] em { $count } navegador
   *[other] em { $count } navegadores
}
sessions-since = desde { $date }
sessions-end = Sair de todos os lugares

password-title = Alterar a senha
password-rule = A nova senha precisa ter { $count ->
    [one] pelo menos { $count } caractere.
   *[other] pelo menos { $count } caracteres.
}
password-text = Todos os seus outros navegadores serão desconectados. Os aplicativos que podem agir em seu nome continuam podendo.
password-current = Senha atual
password-new = Nova senha
password-again = Nova senha mais uma vez
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

footer-terms = Termos de uso
footer-privacy = Privacidade

error-again = Começar de novo
error-request = Requisição
error-method = Esta página não pode ser aberta assim
error-method-text = Esta página não pode ser aberta dessa forma.
error-malformed = Este link não funciona
error-malformed-no-request = Ele não indica nenhum pedido. Volte ao aplicativo e comece de novo.
error-malformed-twice = Ele indica algo duas vezes.
error-malformed-decision = O formulário que seu navegador enviou não contém nenhuma decisão.
error-malformed-form = Não foi possível ler o formulário que seu navegador enviou.
error-malformed-user = O proxy à frente deste serviço não indica um único usuário.
error-two-sessions = Duas sessões ao mesmo tempo
error-two-sessions-text = Seu navegador enviou dois cookies de sessão para este site, e não é possível saber qual é o seu. Apague os cookies deste site e tente novamente.
error-forged = Este formulário não foi aceito
error-forged-text = Ele não veio de uma página deste site. Nada foi alterado.
error-stale = Este formulário está desatualizado
error-stale-text = Você entrou ou saiu nesse meio-tempo, a página ficou aberta por tempo demais ou já houve uma resposta. Nada foi alterado.
error-cookie = Seu navegador não enviou nenhum cookie
error-cookie-text = Este formulário só funciona com um cookie deste site, que contém apenas um número aleatório. Permita cookies deste site e comece de novo.
error-unknown = Este pedido não é conhecido
error-unknown-text = O link do aplicativo não é válido. Volte ao aplicativo e comece de novo.
error-expired = Este pedido expirou
error-expired-text = O prazo terminou. Volte ao aplicativo e comece de novo.
error-used = Este pedido já foi respondido
error-used-text = Cada pedido só pode ser respondido uma vez. Volte ao aplicativo e, se necessário, comece de novo por lá.
error-disabled = Este aplicativo está desativado
error-disabled-text = No momento, ele não pode pedir acesso.
error-callback = Não é possível responder a este pedido
error-callback-text = O endereço para o qual o aplicativo quer enviar você não está registrado para ele.
error-no-application = Aplicativo não encontrado
error-no-application-text = Talvez a permissão dele já tenha sido retirada. Nada foi alterado.
error-password = Sua senha foi alterada nesse meio-tempo
error-password-text = Ela mudou desde que você abriu o formulário: por você em outro navegador ou pelo operador. Nada foi alterado aqui. Entre com a nova senha.
error-nobody = Você não entrou na sua conta
error-nobody-text = Entre na sua conta no lugar de onde veio e depois abra esta página de novo.
error-not-admitted = Sua conta não foi aceita
error-not-admitted-text = Ela está desativada aqui ou em conflito com outra. Fale com os responsáveis por este serviço.
error-unavailable = Tente novamente
error-unavailable-text = O serviço não consegue responder agora. Tente novamente em alguns segundos.
error-fault = Algo deu errado
error-fault-text = A falha é do nosso lado.
error-login = Entrar
error-login-text = Você precisa entrar na sua conta para ver esta página.
error-unproved = Não permitido
error-unproved-text = A requisição não prova em nome de quem é feita.
error-forbidden = Não permitido
error-forbidden-text = Você não pode fazer isso ou veio de outro site. Abra a página a partir deste site.
error-not-found = Não encontrado
error-not-found-text = Não há nada neste endereço. Verifique se ele está escrito corretamente.
error-slow = Lento demais
error-slow-text = A requisição demorou demais. Tente novamente.
error-large = Requisição grande demais
error-large-text = A requisição é grande demais.
error-misdirected = Endereço errado
error-misdirected-text = Este serviço não está neste endereço.
error-rate = Muitas requisições
error-rate-text = Espere um momento e tente novamente.
error-upstream = Indisponível
error-upstream-text = O serviço não responde. Tente novamente em alguns minutos.
error-request-broken = Requisição inválida
error-request-broken-text = A requisição é inválida.
