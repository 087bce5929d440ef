login-title = تسجيل الدخول
login-to-decide = للرد على طلب { $consumer }
login-to-account = إلى حسابك
login-name = اسم المستخدم
login-password = كلمة المرور
login-submit = تسجيل الدخول
login-fields-missing = أدخل اسم المستخدم وكلمة المرور.
login-wrong = اسم المستخدم أو كلمة المرور غير صحيحة.
login-throttled = كان هناك عدد كبير من المحاولات الفاشلة. حاول مرة أخرى بعد { $wait }.
login-busy = يسجّل عدد كبير من الأشخاص الدخول الآن. حاول مرة أخرى بعد بضع ثوانٍ.
login-unavailable = لا يمكن للخدمة التحقق من كلمة المرور الآن. حاول مرة أخرى بعد بضع ثوانٍ.

consent-title = هل تسمح للتطبيق { $consumer } بالتصرف نيابةً عنك؟
consent-user = سجّلت الدخول باسم { $user }
consent-identity-only = سيعرف التطبيق { $consumer } هويتك، وسيمكنه إجراء طلبات نيابةً عنك لا تحتاج إلى إذن خاص.
consent-permissions = سيعرف التطبيق { $consumer } هويتك، ويطلب ما يلي:
consent-allow = سماح
consent-deny = رفض
consent-to-site = في الحالتين ستعود بعد ذلك إلى { $site }.
consent-to-application = في الحالتين ستعود بعد ذلك إلى التطبيق.
consent-to-code = إذا سمحت بذلك، فسيظهر لك رمز تكتبه في التطبيق.
consent-withdraw = لا يرى التطبيق كلمة مرورك أبدًا، ويمكنك سحب الإذن في أي وقت.
consent-continue = متابعة
consent-not-you = ألست صاحب هذا الحساب؟
consent-switch = تسجيل الدخول بحساب آخر

verifier-title = لقد سمحت بوصول التطبيق { $consumer }
verifier-type = اكتب هذا الرمز في التطبيق:
verifier-lifetime = هذا الرمز صالح لمدة { $lifetime } ولمرة واحدة فقط. لا تعطه لأي شخص آخر. يمكنك بعد ذلك إغلاق هذه الصفحة.

denied-title = لقد رفضت طلب التطبيق { $consumer }
denied-text = لا يمكن للتطبيق التصرف نيابةً عنك. يمكنك إغلاق هذه الصفحة.

applications-title = التطبيقات المتصلة
applications-link = التطبيقات التي يمكنها التصرف نيابةً عنك
applications-text = يمكن لهذه التطبيقات التصرف نيابةً عنك. ما تسحبه هنا ينتهي فورًا.
applications-log-out = تسجيل الخروج
applications-withdrawn = لم يعد بإمكان التطبيق { $consumer } التصرف نيابةً عنك.
applications-none = لا يوجد تطبيق يمكنه التصرف نيابةً عنك.
applications-none-here = لا يوجد بين هذه التطبيقات تطبيق يمكنه التصرف نيابةً عنك.
applications-allowed = سُمح به في { $date }
applications-used = آخر استخدام في { $date }
applications-unused = لم يُستخدم بعد
applications-withdraw = سحب الإذن
applications-withdraw-label = سحب الإذن من { $consumer }
applications-more = المزيد
applications-connections = { $count ->
    [one] اتصال واحد
    [two] اتصالان
    [few] { $count } اتصالات
    [many] { $count } اتصالًا
   *[other] { $count } اتصال
}

withdraw-title = هل تريد سحب الإذن من { $consumer }؟
withdraw-text = لن يتمكن التطبيق بعد ذلك من التصرف نيابةً عنك على أيٍّ من أجهزتك.
withdraw-cancel = الإبقاء على الإذن

sessions-title = الجلسات المفتوحة
sessions-open = { $count ->
    [one] في متصفح واحد
    [two] في متصفحين
    [few] في { $count } متصفحات
    [many] في { $count } متصفحًا
   *[other] في { $count } متصفح
}
sessions-since = منذ { $date }
sessions-end = تسجيل الخروج من كل مكان

password-title = تغيير كلمة المرور
password-rule = يجب ألّا تقل كلمة المرور الجديدة عن { $count ->
    [one] حرف واحد.
    [two] حرفين.
    [few] { $count } أحرف.
    [many] { $count } حرفًا.
   *[other] { $count } حرف.
}
password-text = سيُسجَّل خروجك من جميع المتصفحات الأخرى. أما التطبيقات التي يمكنها التصرف نيابةً عنك فستبقى كذلك.
password-current = كلمة المرور الحالية
password-new = كلمة المرور الجديدة
password-again = كلمة المرور الجديدة مرة أخرى
password-changed = تم تغيير كلمة المرور، وسُجِّل خروجك من جميع المتصفحات الأخرى.
password-fields-missing = املأ الحقول الثلاثة.
password-differs = كلمتا المرور الجديدتان مختلفتان.
password-wrong = كلمة المرور الحالية غير صحيحة.
password-short = كلمة المرور الجديدة قصيرة جدًا.
password-long = كلمة المرور الجديدة طويلة جدًا.
password-same = كلمة المرور الجديدة هي نفسها الحالية.
password-name = لا يجوز أن تكون كلمة المرور الجديدة هي اسمك.
password-common = كلمة المرور الجديدة من أكثر الكلمات شيوعًا، وهي أول ما يُخمَّن. اختر كلمة أخرى.

duration-seconds = { $count ->
    [one] ثانية واحدة
    [two] ثانيتين
    [few] { $count } ثوانٍ
    [many] { $count } ثانية
   *[other] { $count } ثانية
}
duration-minutes = { $count ->
    [one] دقيقة واحدة
    [two] دقيقتين
    [few] { $count } دقائق
    [many] { $count } دقيقة
   *[other] { $count } دقيقة
}
duration-hours = { $count ->
    [one] ساعة واحدة
    [two] ساعتين
    [few] { $count } ساعات
    [many] { $count } ساعة
   *[other] { $count } ساعة
}

footer-terms = شروط الاستخدام
footer-privacy = الخصوصية

error-again = ابدأ من جديد
error-request = الطلب
error-method = لا يمكن ذلك بهذه الطريقة
error-method-text = لا يمكن فتح هذه الصفحة بهذه الطريقة.
error-malformed = هذا الرابط غير صالح
error-malformed-no-request = لا يحدد الرابط أي طلب. عُد إلى التطبيق وابدأ من جديد.
error-malformed-twice = يحدد الرابط شيئًا ما مرتين.
error-malformed-decision = لا يحتوي النموذج الذي أرسله متصفحك على أي قرار.
error-malformed-form = تتعذر قراءة النموذج الذي أرسله متصفحك.
error-malformed-user = لا يحدد الخادم الوكيل الأمامي مستخدمًا واحدًا.
error-two-sessions = عمليتا تسجيل دخول في الوقت نفسه
error-two-sessions-text = أرسل متصفحك ملفَّي تعريف ارتباط للجلسة لهذا الموقع، ولا يمكن معرفة أيهما يخصك. احذف ملفات تعريف الارتباط لهذا الموقع وحاول مرة أخرى.
error-forged = لم يُقبل هذا النموذج
error-forged-text = لم يأتِ النموذج من صفحة في هذا الموقع. لم يتغير شيء.
error-stale = انتهت صلاحية هذا النموذج
error-stale-text = سجّلت الدخول أو الخروج في هذه الأثناء، أو بقيت الصفحة مفتوحة مدة طويلة، أو سبق الرد على الطلب. لم يتغير شيء.
error-cookie = لم يرسل متصفحك ملف تعريف ارتباط
error-cookie-text = لا يعمل هذا النموذج إلا مع ملف تعريف ارتباط لهذا الموقع، وهو لا يحتوي إلا على رقم عشوائي. اسمح بملفات تعريف الارتباط لهذا الموقع وابدأ من جديد.
error-unknown = هذا الطلب غير معروف
error-unknown-text = رابط التطبيق غير صالح. عُد إلى التطبيق وابدأ من جديد.
error-expired = انتهت صلاحية هذا الطلب
error-expired-text = مر وقت طويل. عُد إلى التطبيق وابدأ من جديد.
error-used = سبق الرد على هذا الطلب
error-used-text = يمكن الرد على كل طلب مرة واحدة فقط. عُد إلى التطبيق وابدأ منه من جديد إذا لزم الأمر.
error-disabled = هذا التطبيق معطَّل
error-disabled-text = لا يمكنه طلب الوصول حاليًا.
error-callback = لا يمكن الرد على هذا الطلب
error-callback-text = العنوان الذي يريد التطبيق إرسالك إليه غير مسجَّل له.
error-no-application = لا يوجد تطبيق كهذا
error-no-application-text = ربما سُحب الإذن منه من قبل. لم يتغير شيء.
error-password = تغيّرت كلمة المرور في هذه الأثناء
error-password-text = تغيّرت منذ أن فتحت النموذج: غيّرتها أنت في متصفح آخر أو غيّرها المشغّل. لم يتغير شيء هنا. سجّل الدخول بكلمة المرور الجديدة.
error-nobody = لم تسجّل الدخول
error-nobody-text = سجّل الدخول في الموقع الذي أتيت منه، ثم افتح هذه الصفحة مرة أخرى.
error-not-admitted = لا يُسمح لحسابك باستخدام هذه الخدمة
error-not-admitted-text = الحساب معطَّل هنا أو يتعارض مع حساب آخر. اسأل القائمين على هذه الخدمة.
error-unavailable = حاول مرة أخرى
error-unavailable-text = لا يمكن للخدمة الرد الآن. حاول مرة أخرى بعد بضع ثوانٍ.
error-fault = حدث خطأ ما
error-fault-text = الخطأ من جانبنا.
error-login = تسجيل الدخول
error-login-text = يجب تسجيل الدخول لرؤية هذه الصفحة.
error-unproved = غير مسموح
error-unproved-text = تعذّر التحقق من هوية مُرسِل الطلب.
error-forbidden = غير مسموح
error-forbidden-text = لا يُسمح لك بذلك، أو أنك أتيت من موقع آخر. افتح الصفحة من هذا الموقع.
error-not-found = غير موجود
error-not-found-text = لا يوجد شيء في هذا العنوان. تأكد من كتابته بشكل صحيح.
error-slow = بطيء جدًا
error-slow-text = استغرق الطلب وقتًا طويلًا. حاول مرة أخرى.
error-large = كبير جدًا
error-large-text = الطلب كبير جدًا.
error-misdirected = عنوان خاطئ
error-misdirected-text = هذه الخدمة ليست في هذا العنوان.
error-rate = طلبات كثيرة جدًا
error-rate-text = انتظر لحظة ثم حاول مرة أخرى.
error-upstream = غير متاح
error-upstream-text = الخدمة المطلوبة لا تستجيب. حاول مرة أخرى بعد بضع دقائق.
error-request-broken = طلب غير صحيح
error-request-broken-text = الطلب غير صحيح.
