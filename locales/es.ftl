language-name = Español
title-error = Error:
date-words = { $day } de { $month ->
    [1] enero
    [2] febrero
    [3] marzo
    [4] abril
    [5] mayo
    [6] junio
    [7] julio
    [8] agosto
    [9] septiembre
    [10] octubre
    [11] noviembre
   *[12] diciembre
} de { $year }

login-title = Iniciar sesión en { $service }
login-to-decide = Inicie sesión para continuar a { $consumer }.
login-name = Nombre de usuario
login-password = Contraseña
login-submit = Iniciar sesión
login-recovery = ¿Ha olvidado su contraseña?
login-fields-missing = Escriba su nombre de usuario y su contraseña.
login-wrong = El nombre de usuario o la contraseña no son correctos.
login-throttled = Ha habido demasiados intentos fallidos. Vuelva a intentarlo dentro de { $wait }.
login-busy = En este momento hay demasiadas personas iniciando sesión. Vuelva a intentarlo en unos segundos.
login-unavailable = El servicio no puede comprobar su contraseña en este momento. Vuelva a intentarlo en unos segundos.

consent-title = { $consumer } pide acceso a su cuenta de { $service }
consent-user = Sesión iniciada como { $user }
consent-not-you = ¿No es usted?
consent-switch = Iniciar sesión con otra cuenta
consent-earlier = Usted ya lo permitió el { $date }.
consent-more = { $count ->
    [one] Ahora pide { $count } cosa más, marcada como «nuevo».
   *[other] Ahora pide { $count } cosas más, marcadas como «nuevo».
}
consent-nothing-new = La aplicación no pide nada nuevo.
consent-permissions = Si lo permite, la aplicación podrá
consent-identity = Saber quién es usted
consent-identity-name = su nombre de usuario y su identificador
consent-identity-full = su nombre, su nombre de usuario y su identificador
consent-calls = Actuar en su nombre en lo que no necesita ningún permiso especial
consent-new = nuevo
consent-sensitive = delicado
consent-sum = { $count } permisos, { $sensitive ->
    [one] { $sensitive } delicado
   *[other] { $sensitive } delicados
}
consent-sensitive-count = { $count ->
    [one] { $count } de ellos es delicado.
   *[other] { $count } de ellos son delicados.
}
consent-developer = El nombre y la descripción son del desarrollador y { $service } no los comprueba.
consent-developer-name = El nombre es del desarrollador y { $service } no lo comprueba.
consent-since = registrada el { $date }
consent-to-site = Elija lo que elija, volverá a { $site }.
consent-to-scheme = Elija lo que elija, se abrirá después una aplicación de este dispositivo que abre los enlaces { $scheme }.
consent-to-code = Si lo permite, recibirá un código que debe escribir en la aplicación.
consent-allow = Permitir
consent-deny = Denegar
consent-password = La aplicación nunca ve su contraseña.
consent-holds = El acceso vale hasta que lo retire en { $page }.
consent-holds-for = El acceso vale durante { $duration }, o hasta que lo retire en { $page }.
consent-ends-unused = Termina antes si no se usa durante { $duration }.
consent-remembered = Hasta entonces no se le volverá a preguntar por el mismo acceso.
consent-continue = Continuar
consent-continue-to = Continuar a { $site }

verifier-title = Ha dado permiso a { $consumer }
verifier-type = Escriba este código en la aplicación:
verifier-lifetime = Es válido durante { $lifetime } y sirve una sola vez. No se lo dé a nadie más. Cierre esta página cuando la aplicación lo acepte.
verifier-taken = { $consumer } ha recibido el código
verifier-taken-text = Puede cerrar esta página.

denied-title = Ha denegado el acceso a { $consumer }
denied-text = La aplicación no puede actuar en su nombre. Puede cerrar esta página.
denied-still = { $consumer } aún puede actuar en su nombre con el acceso que ya tenía.

applications-title = Aplicaciones conectadas
applications-text = Estas aplicaciones pueden actuar en su nombre. Si retira un acceso, termina de inmediato.
applications-log-out = Cerrar sesión
applications-withdrawn = { $consumer } ya no puede actuar en su nombre.
applications-none = No ha conectado ninguna aplicación.
applications-none-here = Entre estas, ninguna aplicación puede actuar en su nombre.
applications-permissions = { $count ->
    [one] { $count } permiso
   *[other] { $count } permisos
}
applications-allowed = Permitida el { $date }
applications-given = Permitida por el responsable del servicio el { $date }
applications-own = Su propio token de acceso, creado el { $date }
applications-used = usada por última vez el { $date }
applications-unused = sin usar, o solo hace un momento
applications-withdraw = Retirar el acceso
applications-more = Más
applications-connections = { $count ->
    [one] { $count } conexión
   *[other] { $count } conexiones
}

withdraw-title = ¿Retirar el acceso de { $consumer }?
withdraw-text = La aplicación ya no podrá actuar en su nombre en ninguno de sus dispositivos.
withdraw-cancel = Mantener el acceso

sessions-title = Sesiones abiertas
sessions-browser = { $browser } en { $system }
sessions-unknown = Navegador desconocido
sessions-this = Este navegador
sessions-since = desde el { $date }, con la dirección { $address }
sessions-open = { $count ->
    [one] { $count } navegador
   *[other] { $count } navegadores
}
sessions-all = Los { $count } navegadores
sessions-others = Cerrar las demás sesiones
sessions-end = Cerrar sesión en todas partes

logout-title = ¿Cerrar la sesión en { $service }?
logout-text = Tendrá que iniciar sesión de nuevo en este navegador.
logout-others-title = ¿Cerrar las demás sesiones?
logout-others-text = Su sesión sigue abierta aquí. En todos los demás navegadores tendrá que iniciar sesión de nuevo.
logout-all-title = ¿Cerrar sesión en todas partes?
logout-all-text = Tendrá que iniciar sesión de nuevo en todos sus navegadores, también en este.
logout-applications = Las aplicaciones conectadas conservan su acceso.
logout-cancel = Mantener la sesión

notice-out = Se ha cerrado la sesión.
notice-out-all = Se ha cerrado la sesión en todas partes.
notice-out-others = Se han cerrado las demás sesiones.
notice-out-one = Se ha cerrado la sesión de ese navegador.

password-title = Cambiar la contraseña
password-rule = { $count ->
    [one] Use al menos { $count } carácter.
   *[other] Use al menos { $count } caracteres.
}
password-text = Se cerrará la sesión en todos sus demás navegadores. Las aplicaciones que pueden actuar en su nombre podrán seguir haciéndolo.
password-must-change = Un operador ha establecido su contraseña. Elija otra que solo usted conozca para continuar.
password-current = Contraseña actual
password-new = Contraseña nueva
password-again = Repita la contraseña nueva
password-changed = Se ha cambiado su contraseña y se ha cerrado la sesión en todos sus demás navegadores.
password-fields-missing = Rellene los tres campos.
password-differs = Las dos contraseñas nuevas son distintas.
password-wrong = La contraseña actual no es correcta.
password-short = La contraseña nueva es demasiado corta.
password-long = La contraseña nueva es demasiado larga.
password-same = La contraseña nueva es la actual.
password-name = La contraseña nueva no puede ser su nombre.
password-common = La contraseña nueva es una de las más comunes, que son las primeras que se prueban. Elija otra.

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
    [one] { $count } día
   *[other] { $count } días
}

footer-terms = Condiciones de uso
footer-privacy = Privacidad
footer-help = Ayuda
footer-language = Idioma

refusal-consumer = La aplicación es { $consumer }.
refusal-back = Volver a { $site }
refusal-developers = Para desarrolladores
refusal-docs = Más sobre este error

launch-title = La actividad no se ha abierto
launch-text = Ábrala de nuevo desde su curso.
launch-busy = Espere un momento y ábrala de nuevo desde su curso.
launch-reference = Si no funciona, indique a su profesor esta referencia:
launch-administrator = Para el administrador
launch-message = { launch-title }. { launch-text } { launch-reference } { $reference }

developer-title = Llamadas rechazadas de { $consumer }
developer-text = Para los desarrolladores de esta aplicación: qué llamadas suyas rechazó { $service } y por qué. Aquí no se muestra ningún secreto.
developer-until = Esta página termina el { $time }. Quien tenga su dirección puede leerla: no la comparta.
developer-process = Muestra lo que un proceso del servicio ha visto desde { $time }. Si hay varios, otro puede haber visto más: vuelva a cargar la página.
developer-why = Por qué se rechazaron llamadas
developer-none = No se rechazó ninguna llamada.
developer-calls-count = { $count ->
    [one] { $count } llamada
   *[other] { $count } llamadas
}
developer-proof-verified = La firma es correcta.
developer-proof-secrets = La firma es incorrecta y se hizo con sus secretos.
developer-proof-none = Sin demostrar: cualquiera puede enviar su clave.
developer-previous = La última está firmada con su secreto anterior, que va a terminar.
developer-previous-until = Está firmada con su secreto anterior, que termina el { $time }.
developer-observed = Estas llamadas pasaron. Se rechazarán en cuanto se exijan las firmas.
developer-base-strings = Cadenas base de la última
developer-hidden = Las letras y cifras de valores y rutas se muestran como x. Lo que difiere está marcado.
developer-right = Cadena base correcta
developer-signed = Cadena base firmada
developer-last = Últimas llamadas
developer-check = Comprobar una solicitud
developer-check-text = Pegue una solicitud tal como se envió, o una orden de curl, o la cadena base que firmó su biblioteca, o ambas. La solicitud no se reenvía ni se guarda, y no se muestra ningún secreto.
developer-request = Solicitud
developer-base-string = Cadena base que firmó su biblioteca
developer-submit = Comprobar
developer-check-right = La firma es correcta. Aquí no se comprueba si el nonce ya se usó ni si la llamada está permitida.
developer-check-wrong = Esta solicitud se rechaza.
developer-check-unknown = La firma es incorrecta y ningún error conocido la produce: compare el secreto de la aplicación, el del token y las cadenas base.
developer-check-well-formed = La cadena base está bien formada. Si es la de su solicitud, solo lo dice la solicitud.
developer-check-differs = La cadena base no está bien formada. Lo que difiere está marcado.
developer-check-nothing = Pegue una solicitud o una cadena base.
developer-check-unreadable = No se puede leer.
developer-check-other = Esta solicitud nombra otra aplicación.
developer-check-busy = En este momento se comprueban demasiadas solicitudes. Vuelva a intentarlo en unos segundos.

collections-text = Solicitudes para probarlo, para Bruno y Postman. El archivo no contiene ningún secreto: escriba el suyo en sus variables.

register-title = Las claves de sus aplicaciones
register-text = Con una clave propia, una aplicación que usted escriba puede llamar a { $service }.
register-none = No tiene ninguna clave.
register-manage = Gestionar
register-new = Una clave nueva
register-name = Nombre de la aplicación
register-description = Para qué sirve
register-website = Sitio web (opcional)
register-contact = Contacto: una dirección de correo o una página web
register-callbacks = Callbacks, uno por línea; oob para un programa sin página web
register-permissions = Permisos que necesita
register-submit = Pedir la clave
register-approval = El responsable de { $service } decide sobre cada clave. Funciona en cuanto se aprueba.
register-sensitive = El responsable de { $service } decide sobre una clave con un permiso delicado. Las demás funcionan enseguida.
register-key = Clave
register-secret = Secreto
register-made = La clave de { $consumer }
register-once = Copie el secreto ahora. No se volverá a mostrar.
register-waiting = Pendiente de aprobación
register-works = Funciona
register-declined = Rechazada
register-disabled = Desactivada
register-said = El responsable escribió: { $text }
register-asked = Estos callbacks están pendientes de aprobación:
register-rotate = Crear un secreto nuevo
register-grace = El secreto anterior funciona 24 horas más
register-change = Cambiar los callbacks
register-rejections = Ver las llamadas rechazadas
register-end = Eliminar la clave
register-keep = Conservar la clave
register-end-title = ¿Eliminar la clave de { $consumer }?
register-end-text = Todo su acceso termina enseguida, para todos los usuarios. La clave no se puede recuperar.
register-token = Crear un token de acceso para usted
register-token-title = Su token de acceso de { $consumer }
register-token-text = Con él, la aplicación actúa en su nombre como si usted lo hubiera permitido. Uno nuevo pone fin al anterior; también puede ponerle fin en la página de aplicaciones conectadas.
register-token-permits = Podrá
register-token-name = Token de acceso
register-invalid = Corrija esto y envíelo de nuevo:
register-taken = Otra aplicación tiene este nombre. Elija otro.
register-too-many = Hay demasiadas claves en este momento. Elimine una que no necesite, o inténtelo de nuevo mañana.
register-ended = Aquí ya no se conceden claves nuevas.

error-again = Empezar de nuevo
error-try-again = Volver a intentarlo
error-request = Referencia
error-method = Esta página no se abre así
error-method-text = Use el botón o el enlace de este sitio.
error-malformed = Este enlace no funciona
error-malformed-no-request = No indica ninguna solicitud. Vuelva a la aplicación y empiece de nuevo.
error-malformed-twice = Indica algo dos veces.
error-malformed-permission = Indica un permiso que la aplicación no puede solicitar.
error-malformed-decision = El formulario que envió su navegador no contiene ninguna decisión.
error-malformed-form = El formulario que envió su navegador no se puede leer.
error-malformed-user = El proxy que está delante no indica un único usuario.
error-two-sessions = Dos sesiones a la vez
error-two-sessions-text = Su navegador envió dos cookies de sesión para este sitio y no se puede saber cuál es la suya. Borre las cookies de este sitio y vuelva a intentarlo.
error-forged = Este formulario no se ha aceptado
error-forged-text = No procede de una página de este sitio. No se ha cambiado nada.
error-stale = Este formulario ha caducado
error-stale-in = Ha vuelto a iniciar sesión desde que se mostró este formulario. No se ha cambiado nada.
error-stale-out = Su sesión se ha cerrado desde que se mostró este formulario. No se ha cambiado nada.
error-stale-old = La página estuvo abierta demasiado tiempo. No se ha cambiado nada.
error-cookie = Su navegador no envió ninguna cookie
error-cookie-text = Este formulario solo funciona con una cookie de este sitio, que no contiene más que un número aleatorio. Permita las cookies de este sitio y empiece de nuevo.
error-unknown = No reconocemos este enlace
error-unknown-text = El enlace de la aplicación no es válido. Vuelva a la aplicación y empiece de nuevo.
error-expired = Esta solicitud ha caducado
error-expired-text = Ha pasado demasiado tiempo. Vuelva a la aplicación y empiece de nuevo.
error-used = Esta solicitud ya se ha respondido
error-used-text = Cada solicitud se puede responder una sola vez. Vuelva a la aplicación y, si hace falta, empiece allí de nuevo.
error-disabled = Esta aplicación está desactivada
error-disabled-text = En este momento no puede solicitar acceso.
error-ended = Ya no es posible permitir el acceso de esta forma
error-ended-text = Esta aplicación tiene que cambiar antes de poder volver a pedir acceso. El acceso que usted permitió antes se mantiene. Consulte al desarrollador de la aplicación.
error-callback = No se puede responder a esta solicitud
error-callback-text = La dirección a la que la aplicación quiere enviarle no está registrada para ella.
error-no-application = No existe esa aplicación
error-no-application-text = Es posible que ya se haya retirado su acceso. No se ha cambiado nada.
error-link = Este enlace no funciona
error-link-text = Ha terminado o nunca fue válido. Pida otro al operador del servicio.
error-password = Su contraseña ha cambiado entretanto
error-password-text = Ha cambiado desde que abrió el formulario: la cambió usted en otro navegador o la cambió el administrador. Aquí no se ha cambiado nada. Inicie sesión con la contraseña nueva.
error-nobody = No ha iniciado sesión
error-nobody-text = Inicie sesión en el sitio del que viene y abra después de nuevo esta página.
error-not-admitted = Su cuenta no puede iniciar sesión aquí
error-not-admitted-text = Está desactivada aquí o en conflicto con otra. Consulte a los responsables de este servicio.
error-unavailable = Vuelva a intentarlo
error-unavailable-text = El servicio no puede responder en este momento. Vuelva a intentarlo en unos segundos.
error-wait = Vuelva a intentarlo dentro de { $wait }.
error-fault = Se ha producido un error
error-fault-text = El error es nuestro.
error-login = Iniciar sesión
error-login-text = Tiene que iniciar sesión para ver esta página.
error-unproved = Esta dirección es para aplicaciones
error-unproved-text = Los programas la usan con una solicitud firmada. ¿Buscaba sus aplicaciones conectadas?
error-signature = La firma es incorrecta
error-signature-text = Un programa envió una solicitud firmada. Su desarrollador encuentra aquí el motivo.
error-forbidden = No permitido
error-forbidden-text = No tiene permiso para hacer esto o viene de otro sitio. Abra la página desde este sitio.
error-not-found = No encontrado
error-not-found-text = No hay nada en esta dirección. Compruebe que está bien escrita.
error-slow = Tiempo de espera agotado
error-slow-text = La solicitud ha tardado demasiado. Vuelva a intentarlo.
error-large = Solicitud demasiado grande
error-large-text = Envíe menos de una vez.
error-misdirected = Dirección incorrecta
error-misdirected-text = Este servicio está en otra dirección.
error-rate = Demasiadas solicitudes
error-rate-text = Espere un momento y vuelva a intentarlo.
error-upstream = No disponible
error-upstream-text = El servicio no responde. Vuelva a intentarlo dentro de unos minutos.
error-request-broken = Solicitud incorrecta
error-request-broken-text = No se puede leer lo que se envió. Vuelva a abrir la página.
