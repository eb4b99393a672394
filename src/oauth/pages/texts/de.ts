import type { Texts } from './en.js';

/** What members' pages say in German. */
export const de: Texts = {
  account: 'Mitgliedskonto',
  help: 'Hilfe',
  privacy: 'Datenschutz',
  nav: 'Konto',
  appsTitle: 'Verbundene Apps',
  sessionsTitle: 'Sitzungen',
  activityTitle: 'Aktivität',
  keysTitle: 'Schlüssel',
  calendarTitle: 'Kalender',
  dataTitle: 'Deine Daten',
  signOut: 'Abmelden',
  signedInAs: 'Angemeldet als {name}',
  nativeApp: 'App auf diesem Gerät, {host}',
  newTab: 'öffnet sich in einem neuen Tab',

  signIn: {
    title: 'Anmelden',
    titleRefused: 'Fehler: Anmelden',
    toApp: 'Weiter zu',
    toAccount: 'Um zu sehen, welche Apps mit deinem Konto verbunden sind und wo du angemeldet bist.',
    username: 'Benutzername',
    password: 'Passwort',
    submit: 'Anmelden',
    cancel: 'Abbrechen und zurück zur App',
    forgotten: 'Passwort vergessen?',
    noAccount: 'Noch kein Konto?',
    signUp: 'Konto anlegen',
    invalid: 'Das hat nicht geklappt.',
    invalidWhy: 'Der Benutzername oder das Passwort stimmt nicht.',
    throttled: 'Zu viele Versuche.',
    throttledWhy: 'Versuche es in {wait} noch einmal.',
    busy: 'Gerade melden sich zu viele an.',
    busyWhy: 'Dein Passwort wurde noch nicht geprüft. Versuche es gleich noch einmal.',
    upstream: 'Weiter mit {login}',
    or: 'oder',
  },

  consent: {
    title: '{app} Zugriff geben?',
    heading: '{app} Zugriff auf dein Konto geben?',
    again: '{app} fragt noch einmal',
    website: 'Website',
    privacy: 'Datenschutzerklärung',
    notYou: 'Nicht du?',
    nativeAsk: 'Hast du diese App gerade geöffnet?',
    nativeWhy:
      'Jede App auf deinem Gerät kann sich {app} nennen. Wenn du das nicht selbst begonnen hast, wähle „{deny}“.',
    legend: 'Die App könnte',
    changes: 'Kann Daten ändern',
    required: '(gehört immer zur Anmeldung)',
    untick: 'Nimm das Häkchen weg, wo du etwas nicht teilen willst.',
    lastsWeb:
      'Das gilt {days} Tage ab jeder Anmeldung bei der App. Unter „Verbundene Apps“ in deinem Konto kannst du es jederzeit widerrufen.',
    lastsNative:
      'Das gilt, solange du die App benutzt, höchstens {days} Tage, und endet, wenn du sie {idle} Tage nicht benutzt. Unter „Verbundene Apps“ in deinem Konto kannst du es jederzeit widerrufen.',
    deny: 'Ablehnen',
    allow: 'Erlauben',
    back: 'In beiden Fällen kommst du zurück zu {place}.',
  },

  apps: {
    none: 'Keine App kann auf dein Konto zugreifen.',
    noneWhy: 'Eine App erscheint hier, wenn du dich bei ihr anmeldest und ihr etwas erlaubst.',
    lead: 'Diese Apps können dein Konto benutzen, ohne jedes Mal zu fragen. Widerrufe, was du nicht mehr brauchst: Der Zugriff endet sofort.',
    can: 'Sie kann',
    since: 'Seit',
    lastUsed: 'Zuletzt benutzt',
    notSeen: 'Noch nicht gesehen',
    revoke: 'Zugriff widerrufen',
    revokeOf: 'von {app}',
    more: 'Und {count} weitere: Sie erscheinen hier, wenn du andere widerrufst.',
    within: 'Nutzung erscheint hier innerhalb einer Minute.',
  },

  sessions: {
    lead: 'Wo du angemeldet bist. Wenn du etwas davon nicht kennst, melde es ab und sag es der Plattform: Jemand könnte dein Passwort kennen.',
    current: 'Dieser Browser',
    unknownBrowser: 'Unbekannter Browser',
    browserOn: '{browser} auf {system}',
    signedIn: 'Angemeldet',
    lastSeen: 'Zuletzt gesehen',
    end: 'Abmelden',
    endCurrent: 'in diesem Browser',
    endOf: 'in {browser}, zuletzt gesehen {when}',
    endOthers: 'Alle anderen abmelden',
    more: 'Und {count} weitere, länger nicht gesehen: „{endOthers}“ beendet auch sie.',
    appsStay:
      'Abmelden beendet die Sitzung eines Browsers. Verbundene Apps behalten ihren Zugriff, bis du ihn widerrufst.',
  },

  activity: {
    lead: 'Welche App oder welcher Schlüssel deine Daten in den letzten 90 Tagen verwendet hat, nach Tag und Art. Abgelehnte Anfragen zählen nicht.',
    none: 'In den letzten 90 Tagen hat niemand deine Daten verwendet.',
    noneWhy: 'Hier erscheinen Anfragen von Apps und Schlüsseln, die für dich handeln.',
    chart: 'Anfragen pro Tag in den letzten 90 Tagen: {total} insgesamt, höchstens {most} an einem Tag',
    day: 'Tag',
    app: 'App oder Schlüssel',
    what: 'Was sie verwendet hat',
    requests: 'Anfragen',
    last: 'Zuletzt',
    key: '(Schlüssel)',
    gone: 'Entfernte App',
    access: 'Anmeldungen und Zugriff',
    noAccess: 'Nichts in den letzten 90 Tagen.',
    within: 'Die Tage sind die von UTC. Neue Anfragen erscheinen hier innerhalb einer Minute.',
    events: {
      'sign_in.succeeded': 'Du hast dich angemeldet',
      'consent.granted': 'Du hast {app} erlaubt, dein Konto zu verwenden',
      'access.revoked': 'Ein Zugriff wurde beendet: {app}',
      'key.created': 'Ein Schlüssel zu deinen Daten wurde ausgestellt: {app}',
      'key.revoked': 'Ein Schlüssel zu deinen Daten wurde widerrufen: {app}',
      'calendar_link.created': 'Du hast einen Kalenderlink erstellt',
      'calendar_link.revoked': 'Du hast einen Kalenderlink widerrufen',
      'user.exported': 'Du hast deine Daten heruntergeladen',
    },
  },

  keys: {
    none: 'Kein Schlüssel handelt für dich.',
    noneWhy: 'Hier erscheint ein Schlüssel, wenn die Plattform einen für deine Daten ausstellt.',
    lead: 'Mit diesen Schlüsseln handeln Programme für dich, ohne dass du dabei bist. Die Plattform hat sie ausgestellt. Widerrufe einen, der das nicht soll: Er endet sofort und endgültig.',
    can: 'Er kann',
    nothing: 'Nichts, als sich selbst nachschlagen.',
    since: 'Ausgestellt',
    ends: 'Endet',
    never: 'Nie',
    revoke: 'Schlüssel widerrufen',
    more: 'Und {count} weitere: Sie erscheinen hier, wenn du andere widerrufst.',
  },

  calendar: {
    titleRefused: 'Fehler: Kalender',
    lead: 'Erstelle einen Link und abonniere ihn in deinem Kalenderprogramm: Es zeigt dann deine Veranstaltungen und hält sie aktuell. Wer den Link hat, kann deine Veranstaltungen lesen. Gib deshalb jedem Programm einen eigenen und sonst niemandem einen.',
    name: 'Wo du ihn verwenden wirst, zum Beispiel „Handy“',
    create: 'Link erstellen',
    made: 'Der Link „{name}“ ist fertig.',
    once: 'Kopiere ihn jetzt: Er wird nur dieses eine Mal angezeigt. Für ein weiteres Programm erstellst du einen neuen.',
    link: 'Dein Kalenderlink',
    created: 'Erstellt',
    revoke: 'Widerrufen',
    limit: 'Du hast {most} Links; mehr sind nicht möglich. Widerrufe zuerst einen.',
    badName: 'Gib dem Link einen Namen mit höchstens {longest} Zeichen.',
    stays:
      'Ein Link gilt, bis du ihn widerrufst, auch wenn du dich abmeldest. Er endet, wenn alle deine Anmeldungen beendet werden, etwa durch ein neues Passwort. Er zeigt deine nächsten 1.000 Veranstaltungen und die neuesten 500 des letzten Jahres. Nutzung erscheint hier innerhalb einer Minute.',
  },

  data: {
    lead: 'Alles, was hier über dich gespeichert ist, als eine Datei (JSON), die du aufheben oder einem anderen Programm geben kannst:',
    parts: [
      'dein Profil',
      'deine Veranstaltungen, jede mit deiner Antwort',
      'deine Verbindungen, auch die noch nicht angenommenen',
      'Auszeichnungen, mit deinem Fortschritt',
      'verbundene Apps, Schlüssel und Kalenderlinks, ohne ihre Geheimnisse',
      'wo du angemeldet bist',
      'wer welche deiner Daten verwendet hat, nach Tag',
      'Anmeldungen und Änderungen deines Kontos, wie sie aufgezeichnet wurden',
    ],
    download: 'Herunterladen',
    careful: 'Das kann einen Moment dauern. Bewahre die Datei dort auf, wo sie sonst niemand lesen kann.',
  },

  done: {
    'access-revoked': 'Die App hat keinen Zugriff mehr auf dein Konto.',
    'session-ended': 'Diese Sitzung ist abgemeldet.',
    'others-ended': 'Alle anderen Sitzungen sind abgemeldet.',
    'key-revoked': 'Dieser Schlüssel gilt nicht mehr.',
    'calendar-link-revoked': 'Dieser Kalenderlink gilt nicht mehr.',
  },

  signOutPage: {
    title: 'Abmelden',
    heading: 'Abmelden?',
    byApp: '{app} möchte dich in diesem Browser abmelden.',
    plain: 'Du wirst in diesem Browser abgemeldet.',
    appsStay:
      'Verbundene Apps behalten ihren Zugriff. Unter „Verbundene Apps“ in deinem Konto kannst du ihn widerrufen.',
    stay: 'Angemeldet bleiben',
    submit: 'Abmelden',
  },

  signedOut: {
    title: 'Abgemeldet',
    heading: 'Du bist abgemeldet',
    close: 'Du kannst diese Seite schließen.',
    closeOrBack: 'Du kannst diese Seite schließen oder zu {app} zurückkehren.',
    appsStay: 'Verbundene Apps behalten ihren Zugriff, bis du ihn widerrufst.',
    toApps: 'Verbundene Apps ansehen',
  },

  error: {
    askForHelp: 'um Hilfe bittest',
    giveId: 'Wenn du {askForHelp}, nenne diese Fehler-ID:',
    developers: 'Für Entwickler',
    notRegistered: 'Das wurde gesendet, ist aber nicht genau so registriert:',
    registered: 'Für diese App registriert:',
    next: { tryAgain: 'Noch einmal versuchen', anotherAccount: 'Ein anderes Konto verwenden' },
  },

  faults: {
    busy: ['Bitte versuche es noch einmal', 'Der Server ist ausgelastet. Versuche es gleich noch einmal.'],
    failed: [
      'Das hat nicht geklappt',
      'Auf dem Server ist etwas schiefgegangen; an dir liegt es nicht. Versuche es später noch einmal.',
    ],
    expired: ['Diese Anmeldung ist abgelaufen', 'Geh zurück zur App und melde dich von dort noch einmal an.'],
    wrongRequest: [
      'Die App hat einen Fehler gemacht',
      'Was sie verlangt, ist nicht möglich, und es wurde nichts mit ihr geteilt. Geh zurück zur App und versuche es noch einmal. Wenn es wieder geschieht, sag es denen, die die App machen.',
    ],
    wrongSignOut: [
      'Du wurdest nicht abgemeldet',
      'Der Link oder das Formular, über das du gekommen bist, ist falsch oder zu alt. Geh zurück und versuche es noch einmal, oder melde dich in deinem Konto ab.',
    ],
    unknownApp: [
      'Diese App ist hier nicht bekannt',
      'Sie ist nicht registriert oder wurde abgeschaltet, und es wurde nichts mit ihr geteilt. Wenn du der App vertraust, sag es denen, die sie machen.',
    ],
    wrongAddress: [
      'Die App kann deine Antwort nicht bekommen',
      'Sie verlangt die Antwort an einer Adresse, die für sie nicht registriert ist. Damit niemand sonst sie bekommt, wirst du nicht dorthin geschickt. Sag es denen, die die App machen.',
    ],
    signedOut: ['Du bist abgemeldet', 'Öffne die Seite neu, melde dich an und versuche es dann noch einmal.'],
    foreignForm: [
      'Das hat nicht geklappt',
      'Das Formular kam nicht von unserer Seite. Geh zurück, lade die Seite neu und versuche es noch einmal.',
    ],
    unreadableForm: [
      'Das hat nicht geklappt',
      'Das Formular konnte nicht gelesen werden. Geh zurück, lade die Seite neu und versuche es noch einmal.',
    ],
    unknownMember: [
      'Hier gibt es kein Konto für dich',
      '{login} kennt dich, aber mit diesem Konto kann sich hier niemand anmelden.',
    ],
    upstreamAway: [
      '{login} antwortet nicht',
      'Dort meldest du dich an, und es ist gerade nicht zu erreichen. Versuche es gleich noch einmal.',
    ],
    upstreamFailed: [
      'Die Anmeldung mit {login} hat nicht geklappt',
      'Die Antwort von dort ließ sich nicht verwenden, und du bist nicht angemeldet. Versuche es noch einmal.',
    ],
    malformed: [
      'Das hat nicht geklappt',
      'Der Link oder das Formular, über das du gekommen bist, lässt sich nicht beantworten. Geh zurück zur App und versuche es noch einmal.',
    ],
    tooMany: [
      'Zu viele Anfragen',
      'Von dort, wo du bist, kamen zu viele Anfragen. Versuche es in {wait} noch einmal.',
    ],
  },

  scopes: {
    'profile:read': 'dein Profil sehen: Namen, Text über dich, Bild und Zahlen',
    'profile:write': 'deinen Namen, deinen Text über dich und dein Bild ändern',
    'events:read':
      'die Veranstaltungen sehen, die du organisierst, besuchst oder zu denen du eingeladen bist',
    'connections:read': 'die Menschen sehen, mit denen du verbunden bist',
    'achievements:read': 'deine Auszeichnungen und deinen Fortschritt sehen',
    openid: 'wissen, wer du bist: Benutzername, Name und Bild',
    profile: 'bei jeder Anmeldung deinen Namen, Benutzernamen und dein Bild bekommen',
    offline_access: 'verbunden bleiben, während du weg bist, bis du den Zugriff widerrufst',
  },
};
