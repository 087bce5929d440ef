language-name = العربية
title-error = خطأ:
date-words = { $day } { $month ->
    [1] يناير
    [2] فبراير
    [3] مارس
    [4] أبريل
    [5] مايو
    [6] يونيو
    [7] يوليو
    [8] أغسطس
    [9] سبتمبر
    [10] أكتوبر
    [11] نوفمبر
   *[12] ديسمبر
} { $year }

login-title = تسجيل الدخول إلى { $service }
login-to-decide = سجّل الدخول للمتابعة إلى { $consumer }.
login-name = اسم المستخدم
login-password = كلمة المرور
login-submit = تسجيل الدخول
login-recovery = هل نسيت كلمة المرور؟
login-fields-missing = أدخل اسم المستخدم وكلمة المرور.
login-wrong = اسم المستخدم أو كلمة المرور غير صحيحة.
login-throttled = كان هناك عدد كبير من المحاولات الفاشلة. حاول مرة أخرى بعد { $wait }.
login-busy = يسجّل عدد كبير من الأشخاص الدخول الآن. حاول مرة أخرى بعد بضع ثوانٍ.
login-unavailable = لا يمكن للخدمة التحقق من كلمة المرور الآن. حاول مرة أخرى بعد بضع ثوانٍ.

consent-title = يطلب التطبيق { $consumer } الوصول إلى حسابك في { $service }
consent-user = سجّلت الدخول باسم { $user }
consent-not-you = ألست صاحب هذا الحساب؟
consent-switch = تسجيل الدخول بحساب آخر
consent-earlier = سبق أن سمحت بذلك في { $date }.
consent-more = { $count ->
    [two] يطلب الآن شيئين إضافيين، عليهما علامة «جديد».
    [few] يطلب الآن { $count } أشياء إضافية، عليها علامة «جديد».
    [many] يطلب الآن { $count } شيئًا إضافيًا، عليها علامة «جديد».
    [one] يطلب الآن شيئًا واحدًا إضافيًا، عليه علامة «جديد».
   *[other] يطلب الآن { $count } شيء إضافي، عليها علامة «جديد».
}
consent-nothing-new = لا يطلب التطبيق شيئًا جديدًا.
consent-permissions = إذا سمحت بذلك، فسيمكن للتطبيق
consent-identity = معرفة هويتك
consent-identity-name = اسم المستخدم ومعرّفك
consent-identity-full = اسمك واسم المستخدم ومعرّفك
consent-calls = القيام نيابةً عنك بما لا يحتاج إلى إذن خاص
consent-new = جديد
consent-sensitive = حسّاس
consent-sum = { $count ->
    [one] إذن واحد
    [two] إذنان
    [few] { $count } أذونات
    [many] { $count } إذنًا
   *[other] { $count } إذن
}، منها { $sensitive ->
    [two] اثنان حسّاسان
    [one] واحد حسّاس
   *[other] { $sensitive } حسّاسة
}
consent-sensitive-count = { $count ->
    [two] اثنان منها حسّاسان.
    [one] واحد منها حسّاس.
   *[other] { $count } منها حسّاسة.
}
consent-developer = الاسم والوصف من المطوّر، ولم تتحقق منهما { $service }.
consent-developer-name = الاسم من المطوّر، ولم تتحقق منه { $service }.
consent-since = سُجِّل في { $date }
consent-to-site = أيًّا كان اختيارك، ستعود إلى { $site }.
consent-to-scheme = أيًّا كان اختيارك، سيُفتح بعد ذلك تطبيق على هذا الجهاز يفتح روابط { $scheme }.
consent-to-code = إذا سمحت بذلك، فستحصل على رمز تكتبه في التطبيق.
consent-allow = سماح
consent-deny = رفض
consent-password = لا يرى التطبيق كلمة مرورك أبدًا.
consent-holds = يبقى الإذن ساريًا إلى أن تسحبه في { $page }.
consent-holds-for = يبقى الإذن ساريًا لمدة { $duration }، أو إلى أن تسحبه في { $page }.
consent-ends-unused = وينتهي قبل ذلك بعد { $duration } دون استخدام.
consent-remembered = وحتى ذلك الحين لن تُسأل مرة أخرى عن الوصول نفسه.
consent-continue = متابعة
consent-continue-to = المتابعة إلى { $site }

verifier-title = لقد سمحت بوصول التطبيق { $consumer }
verifier-type = اكتب هذا الرمز في التطبيق:
verifier-lifetime = هذا الرمز صالح لمدة { $lifetime } ولمرة واحدة فقط. لا تعطه لأي شخص آخر. أغلق هذه الصفحة بعد أن يقبل التطبيق الرمز.
verifier-taken = استلم { $consumer } الرمز
verifier-taken-text = يمكنك إغلاق هذه الصفحة.

denied-title = لقد رفضت طلب التطبيق { $consumer }
denied-text = لا يمكن للتطبيق التصرف نيابةً عنك. يمكنك إغلاق هذه الصفحة.
denied-still = لا يزال بإمكان التطبيق { $consumer } التصرف نيابةً عنك بالإذن الذي سبق أن حصل عليه.

applications-title = التطبيقات المتصلة
applications-text = يمكن لهذه التطبيقات التصرف نيابةً عنك. ما تسحبه هنا ينتهي فورًا.
applications-log-out = تسجيل الخروج
applications-withdrawn = لم يعد بإمكان التطبيق { $consumer } التصرف نيابةً عنك.
applications-none = لم تربط أي تطبيق بعد.
applications-none-here = لا يوجد بين هذه التطبيقات تطبيق يمكنه التصرف نيابةً عنك.
applications-permissions = { $count ->
    [one] إذن واحد
    [two] إذنان
    [few] { $count } أذونات
    [many] { $count } إذنًا
   *[other] { $count } إذن
}
applications-allowed = سُمح به في { $date }
applications-given = سمح به القائم على هذه الخدمة في { $date }
applications-own = رمز الوصول الخاص بك، أُنشئ في { $date }
applications-used = آخر استخدام في { $date }
applications-unused = لم يُستخدم، أو استُخدم للتو
applications-withdraw = سحب الإذن
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
sessions-browser = { $browser } على { $system }
sessions-unknown = متصفح غير معروف
sessions-this = هذا المتصفح
sessions-since = منذ { $date }، من العنوان { $address }
sessions-open = { $count ->
    [one] متصفح واحد
    [two] متصفحان
    [few] { $count } متصفحات
    [many] { $count } متصفحًا
   *[other] { $count } متصفح
}
sessions-all = كل المتصفحات ({ $count })
sessions-others = تسجيل الخروج من كل مكان آخر
sessions-end = تسجيل الخروج من كل مكان

logout-title = هل تريد تسجيل الخروج من { $service }؟
logout-text = سيلزمك تسجيل الدخول من جديد في هذا المتصفح.
logout-others-title = هل تريد تسجيل الخروج من كل مكان آخر؟
logout-others-text = ستبقى مسجّل الدخول هنا. أما في جميع المتصفحات الأخرى فسيلزمك تسجيل الدخول من جديد.
logout-all-title = هل تريد تسجيل الخروج من كل مكان؟
logout-all-text = سيلزمك تسجيل الدخول من جديد في جميع متصفحاتك، ومنها هذا المتصفح.
logout-applications = تحتفظ التطبيقات المتصلة بإمكانية الوصول.
logout-cancel = البقاء مسجّل الدخول

notice-out = تم تسجيل الخروج.
notice-out-all = تم تسجيل الخروج من كل مكان.
notice-out-others = تم تسجيل الخروج من كل مكان آخر.
notice-out-one = تم تسجيل الخروج من ذلك المتصفح.

password-title = تغيير كلمة المرور
password-rule = { $count ->
    [one] استخدم حرفًا واحدًا على الأقل.
    [two] استخدم حرفين على الأقل.
    [few] استخدم { $count } أحرف على الأقل.
    [many] استخدم { $count } حرفًا على الأقل.
   *[other] استخدم { $count } حرف على الأقل.
}
password-text = سيُسجَّل خروجك من جميع المتصفحات الأخرى. أما التطبيقات التي يمكنها التصرف نيابةً عنك فستبقى كذلك.
password-must-change = حدّد مشغّل الخدمة كلمة مرورك. اختر كلمة أخرى لا يعرفها سواك، ثم تابع.
password-current = كلمة المرور الحالية
password-new = كلمة المرور الجديدة
password-again = تأكيد كلمة المرور الجديدة
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
duration-days = { $count ->
    [one] يوم واحد
    [two] يومين
    [few] { $count } أيام
    [many] { $count } يومًا
   *[other] { $count } يوم
}

footer-terms = شروط الاستخدام
footer-privacy = الخصوصية
footer-help = المساعدة
footer-language = اللغة

refusal-consumer = التطبيق هو { $consumer }.
refusal-back = العودة إلى { $site }
refusal-developers = للمطوّرين
refusal-docs = المزيد عن هذا الخطأ

launch-title = تعذّر فتح النشاط
launch-text = افتحه مرة أخرى من مقررك.
launch-busy = انتظر لحظة، ثم افتحه مرة أخرى من مقررك.
launch-reference = إذا لم يُجدِ ذلك، فأعطِ معلمك هذا الرقم المرجعي:
launch-administrator = لمسؤول النظام
launch-message = { launch-title }. { launch-text } { launch-reference } { $reference }

developer-title = الاستدعاءات المرفوضة من { $consumer }
developer-text = لمطوّري هذا التطبيق: الاستدعاءات التي رفضتها { $service } وأسباب رفضها. لا يُعرض هنا أي سر.
developer-until = تنتهي هذه الصفحة في { $time }. يمكن لكل من لديه عنوانها قراءتها: لا تشاركه مع أحد.
developer-process = تعرض ما تلقّته عملية واحدة من عمليات الخدمة منذ { $time }. إن كانت هناك عدة عمليات فقد تكون عملية أخرى تلقّت المزيد: أعد تحميل الصفحة.
developer-why = أسباب رفض الاستدعاءات
developer-none = لم يُرفض أي استدعاء.
developer-calls-count = { $count ->
    [zero] لا استدعاءات
    [one] استدعاء واحد
    [two] استدعاءان
    [few] { $count } استدعاءات
    [many] { $count } استدعاءً
   *[other] { $count } استدعاء
}
developer-proof-verified = التوقيع صحيح.
developer-proof-secrets = التوقيع غير صحيح، لكنه أُنشئ بأسرارك.
developer-proof-none = غير مُثبت: يمكن لأي شخص إرسال مفتاحك.
developer-previous = آخرها موقَّع بسرّك السابق الذي سينتهي قريبًا.
developer-previous-until = الطلب موقَّع بسرّك السابق الذي ينتهي في { $time }.
developer-observed = مرّت هذه الاستدعاءات. ستُرفض عندما تصبح التواقيع إلزامية.
developer-base-strings = النصوص الأساسية لآخر استدعاء
developer-hidden = تظهر حروف القيم والمسارات وأرقامها على شكل x. وما يختلف معلَّم.
developer-right = النص الأساسي الصحيح
developer-signed = النص الأساسي الموقَّع
developer-last = آخر الاستدعاءات
developer-check = فحص طلب
developer-check-text = ألصق طلبًا كما أُرسل، أو أمر curl، أو النص الأساسي الذي وقّعته مكتبتك، أو كليهما. لا يُحوَّل الطلب ولا يُحفظ، ولا يُعرض أي سر.
developer-request = الطلب
developer-base-string = النص الأساسي الذي وقّعته مكتبتك
developer-submit = فحص
developer-check-right = التوقيع صحيح. لا يُفحص هنا هل استُخدم الرقم العشوائي من قبل، ولا هل الاستدعاء مسموح.
developer-check-wrong = هذا الطلب مرفوض.
developer-check-unknown = التوقيع غير صحيح، ولا يفسّره أي خطأ معروف: قارن سر التطبيق وسر الرمز والنصوص الأساسية.
developer-check-well-formed = النص الأساسي سليم الصياغة. أما كونه نص طلبك فلا يبيّنه إلا الطلب نفسه.
developer-check-differs = النص الأساسي غير سليم الصياغة. ما يختلف معلَّم.
developer-check-nothing = ألصق طلبًا أو نصًا أساسيًا.
developer-check-unreadable = لا يمكن قراءة هذا.
developer-check-other = هذا الطلب يخص تطبيقًا آخر.
developer-check-busy = تُفحص الآن طلبات كثيرة جدًا. حاول مرة أخرى بعد بضع ثوانٍ.

collections-text = طلبات لتجربته، لبرنامجي Bruno وPostman. لا يحتوي الملف على أي سر: اكتب سرك في متغيراته.

register-title = مفاتيح تطبيقاتك
register-text = بمفتاح خاص به، يستطيع تطبيق تكتبه أن يستدعي { $service }.
register-none = ليس لديك أي مفتاح.
register-manage = إدارة
register-new = مفتاح جديد
register-name = اسم التطبيق
register-description = الغرض منه
register-website = موقع الويب (اختياري)
register-contact = جهة الاتصال: عنوان بريد إلكتروني أو صفحة ويب
register-callbacks = عناوين العودة، عنوان في كل سطر؛ و oob لبرنامج بلا صفحة ويب
register-permissions = الأذونات التي يحتاجها
register-submit = طلب المفتاح
register-approval = يقرر مشغّل { $service } بشأن كل مفتاح. يعمل المفتاح حالما تتم الموافقة عليه.
register-sensitive = يقرر مشغّل { $service } بشأن المفتاح الذي يطلب إذنًا حساسًا. تعمل المفاتيح الأخرى فورًا.
register-key = المفتاح
register-secret = السر
register-made = مفتاح { $consumer }
register-once = انسخ السر الآن. لن يُعرض مرة أخرى.
register-waiting = في انتظار الموافقة
register-works = يعمل
register-declined = مرفوض
register-disabled = معطّل
register-said = كتب المشغّل: { $text }
register-asked = عناوين العودة هذه في انتظار الموافقة:
register-rotate = إنشاء سر جديد
register-grace = يعمل السر القديم 24 ساعة أخرى
register-change = تغيير عناوين العودة
register-rejections = عرض الاستدعاءات المرفوضة
register-end = إنهاء المفتاح
register-keep = الإبقاء على المفتاح
register-end-title = هل تريد إنهاء مفتاح { $consumer }؟
register-end-text = ينتهي كل وصوله فورًا، لجميع المستخدمين. لا يمكن استعادة المفتاح.
register-token = إنشاء رمز وصول لنفسك
register-token-title = رمز الوصول الخاص بك إلى { $consumer }
register-token-text = به يتصرف التطبيق نيابةً عنك كما لو أنك سمحت له. الرمز الجديد ينهي الرمز السابق، ويمكنك إنهاؤه أيضًا من صفحة التطبيقات المتصلة.
register-token-permits = سيتمكن من
register-token-name = رمز الوصول
register-invalid = صحّح ما يلي وأرسله مرة أخرى:
register-taken = تطبيق آخر يحمل هذا الاسم. اختر اسمًا آخر.
register-too-many = هناك مفاتيح كثيرة جدًا حاليًا. أنهِ مفتاحًا لا تحتاجه، أو حاول مرة أخرى غدًا.
register-ended = لم تعد تُمنح مفاتيح جديدة هنا.

error-again = ابدأ من جديد
error-try-again = إعادة المحاولة
error-request = الرقم المرجعي
error-method = لا يمكن فتح هذه الصفحة بهذه الطريقة
error-method-text = استخدم الزر أو الرابط في هذا الموقع.
error-malformed = هذا الرابط غير صالح
error-malformed-no-request = الرابط غير مكتمل. عُد إلى التطبيق وابدأ من جديد.
error-malformed-twice = يحدد الرابط شيئًا ما مرتين.
error-malformed-permission = يحدد الرابط إذنًا لا يحق للتطبيق طلبه.
error-malformed-decision = لا يحتوي النموذج الذي أرسله متصفحك على أي قرار.
error-malformed-form = تتعذر قراءة النموذج الذي أرسله متصفحك.
error-malformed-user = لا يحدد الخادم الوكيل الأمامي مستخدمًا واحدًا.
error-two-sessions = عمليتا تسجيل دخول في الوقت نفسه
error-two-sessions-text = أرسل متصفحك ملفَّي تعريف ارتباط للجلسة لهذا الموقع، ولا يمكن معرفة أيهما يخصك. احذف ملفات تعريف الارتباط لهذا الموقع وحاول مرة أخرى.
error-forged = لم يُقبل هذا النموذج
error-forged-text = لم يأتِ النموذج من صفحة في هذا الموقع. لم يتغير شيء.
error-stale = انتهت صلاحية هذا النموذج
error-stale-in = سجّلت الدخول من جديد بعد عرض هذا النموذج. لم يتغير شيء.
error-stale-out = سُجّل خروجك بعد عرض هذا النموذج. لم يتغير شيء.
error-stale-old = بقيت الصفحة مفتوحة مدة طويلة. لم يتغير شيء.
error-cookie = لم يرسل متصفحك ملف تعريف ارتباط
error-cookie-text = لا يعمل هذا النموذج إلا مع ملف تعريف ارتباط لهذا الموقع، وهو لا يحتوي إلا على رقم عشوائي. اسمح بملفات تعريف الارتباط لهذا الموقع وابدأ من جديد.
error-unknown = لم نتعرّف على هذا الرابط
error-unknown-text = رابط التطبيق غير صالح. عُد إلى التطبيق وابدأ من جديد.
error-expired = انتهت صلاحية هذا الطلب
error-expired-text = مر وقت طويل. عُد إلى التطبيق وابدأ من جديد.
error-used = سبق الرد على هذا الطلب
error-used-text = يمكن الرد على كل طلب مرة واحدة فقط. عُد إلى التطبيق وابدأ منه من جديد إذا لزم الأمر.
error-disabled = هذا التطبيق معطَّل
error-disabled-text = لا يمكنه طلب الوصول الآن.
error-ended = لم يعد السماح بالوصول بهذه الطريقة ممكنًا
error-ended-text = يجب تغيير هذا التطبيق قبل أن يطلب الوصول مجددًا. يبقى الوصول الذي سمحت به سابقًا. اسأل مطوّر التطبيق.
error-callback = لا يمكن الرد على هذا الطلب
error-callback-text = العنوان الذي يريد التطبيق إرسالك إليه غير مسجَّل له.
error-no-application = لا يوجد تطبيق كهذا
error-no-application-text = ربما سُحب الإذن منه من قبل. لم يتغير شيء.
error-link = هذا الرابط لا يعمل
error-link-text = انتهى أو لم يكن صالحًا قط. اطلب رابطًا آخر من مشغّل الخدمة.
error-password = تغيّرت كلمة المرور في هذه الأثناء
error-password-text = تغيّرت منذ أن فتحت النموذج: غيّرتها أنت في متصفح آخر أو غيّرها المشغّل. لم يتغير شيء هنا. سجّل الدخول بكلمة المرور الجديدة.
error-nobody = لم تسجّل الدخول
error-nobody-text = سجّل الدخول في الموقع الذي أتيت منه، ثم افتح هذه الصفحة مرة أخرى.
error-not-admitted = لا يمكن لحسابك تسجيل الدخول هنا
error-not-admitted-text = الحساب معطَّل هنا أو يتعارض مع حساب آخر. اسأل القائمين على هذه الخدمة.
error-unavailable = حاول مرة أخرى
error-unavailable-text = لا يمكن للخدمة الرد الآن. حاول مرة أخرى بعد بضع ثوانٍ.
error-wait = حاول مرة أخرى بعد { $wait }.
error-fault = حدث خطأ ما
error-fault-text = الخطأ من جانبنا.
error-login = تسجيل الدخول
error-login-text = يجب تسجيل الدخول لرؤية هذه الصفحة.
error-unproved = هذا العنوان مخصص للتطبيقات
error-unproved-text = تستدعيه البرامج بطلب موقَّع. هل كنت تبحث عن تطبيقاتك المتصلة؟
error-signature = التوقيع غير صحيح
error-signature-text = أرسل برنامج طلبًا موقَّعًا. يجد المطوّر السبب هنا.
error-forbidden = غير مسموح
error-forbidden-text = لا يُسمح لك بذلك، أو أنك أتيت من موقع آخر. افتح الصفحة من هذا الموقع.
error-not-found = غير موجود
error-not-found-text = لا يوجد شيء في هذا العنوان. تأكد من كتابته بشكل صحيح.
error-slow = انتهت المهلة
error-slow-text = استغرق الطلب وقتًا طويلًا. حاول مرة أخرى.
error-large = الطلب كبير جدًا
error-large-text = أرسل بيانات أقل دفعة واحدة.
error-misdirected = عنوان خاطئ
error-misdirected-text = هذه الخدمة في عنوان آخر.
error-rate = طلبات كثيرة جدًا
error-rate-text = انتظر لحظة ثم حاول مرة أخرى.
error-upstream = غير متاح
error-upstream-text = الخدمة المطلوبة لا تستجيب. حاول مرة أخرى بعد بضع دقائق.
error-request-broken = طلب غير صحيح
error-request-broken-text = تعذّرت قراءة ما أُرسل. افتح الصفحة من جديد.
