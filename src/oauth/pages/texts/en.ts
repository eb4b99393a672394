import { SCOPES } from '../../../auth/scopes.js';
import type { Scope } from '../../../auth/scopes.js';

/** Why a page cannot be shown: what happened, and what to do. */
const FAULTS = {
  busy: ['Please try again', 'The server is busy. Try again in a moment.'],
  failed: ['This did not work', 'The server failed in a way that is not your fault. Try again later.'],
  expired: ['This sign-in has expired', 'Go back to the app and sign in from there again.'],
  wrongRequest: [
    'The app made a mistake',
    'What it asked for is not possible, and nothing was shared with it. Go back to the app and try again. If it happens again, tell the people who make the app.',
  ],
  wrongSignOut: [
    'You were not signed out',
    'The link or form that brought you here is wrong or too old. Go back and try again, or sign out in your account.',
  ],
  unknownApp: [
    'This app is not known here',
    'It is not registered, or it was switched off, and nothing was shared with it. If you trust the app, tell the people who make it.',
  ],
  wrongAddress: [
    'The app cannot be sent your answer',
    'It asks for an answer at an address that is not registered for it. So that nobody else gets it, you are not sent there. Tell the people who make the app.',
  ],
  signedOut: ['You are signed out', 'Open the page again and sign in, then try once more.'],
  foreignForm: [
    'This did not work',
    'The form was not sent from our page. Go back, load the page again and try once more.',
  ],
  unreadableForm: [
    'This did not work',
    'The form could not be read. Go back, load the page again and try once more.',
  ],
  unknownMember: [
    'There is no account for you here',
    '{login} knows you, but nobody with that account can sign in here.',
  ],
  upstreamAway: [
    '{login} does not answer',
    'You sign in there, and it cannot be reached now. Try again in a moment.',
  ],
  upstreamFailed: [
    'Signing in with {login} did not work',
    'Its answer could not be used, and you are not signed in. Try again.',
  ],
  malformed: [
    'This did not work',
    'The link or form that brought you here is not one that can be answered. Go back to the app and try again.',
  ],
  tooMany: ['Too many requests', 'Too much was asked for from where you are. Try again in {wait}.'],
} satisfies Record<string, Fault>;

type Fault = [title: string, message: string];

/** Why a page cannot be shown, by the name of what it says. */
export type FaultName = keyof typeof FAULTS;

/** What members' pages say in English, and of which every other language has all. `{name}` stands for what a page fills in. */
export const en = {
  account: 'Member account',
  help: 'Help',
  privacy: 'Privacy',
  nav: 'Account',
  appsTitle: 'Connected apps',
  sessionsTitle: 'Sessions',
  securityTitle: 'Security',
  activityTitle: 'Activity',
  keysTitle: 'Keys',
  calendarTitle: 'Calendar',
  dataTitle: 'Your data',
  signOut: 'Sign out',
  signedInAs: 'Signed in as {name}',
  nativeApp: 'App on this device, {host}',
  newTab: 'opens in a new tab',

  signIn: {
    title: 'Sign in',
    titleRefused: 'Error: Sign in',
    toApp: 'To continue to',
    toAccount: 'To see the apps that are connected to your account, and where you are signed in.',
    username: 'Username',
    password: 'Password',
    submit: 'Sign in',
    cancel: 'Cancel and go back to the app',
    forgotten: 'Forgot your password?',
    noAccount: 'No account yet?',
    signUp: 'Create one',
    invalid: 'That did not work.',
    invalidWhy: 'The username or the password is not right.',
    throttled: 'Too many attempts.',
    throttledWhy: 'Try again in {wait}.',
    busy: 'Too many people are signing in.',
    busyWhy: 'Your password was not checked yet. Try again in a moment.',
    unproven: 'That did not work.',
    unprovenWhy: 'Your passkey could not be used. Try again.',
    upstream: 'Continue with {login}',
    or: 'or',
    passkey: 'Sign in with a passkey',
    passkeyOnly:
      'The app asks you to sign in with a passkey. If you have none yet, add one under “Security” in your account.',
    cancelled: 'No passkey was used. Try again, or sign in in another way.',
  },

  passwordReset: {
    title: 'New password',
    titleRefused: 'Error: New password',
    ask: 'You are sent a mail with a link by which you set a new password.',
    send: 'Send the mail',
    sent: 'If there is a mail address for this account, the mail is on its way. Its link works once, for 30 minutes.',
    choose: 'You are signed out everywhere then, and apps lose their access.',
    set: 'Set the password',
    expired: 'This link was used before, or is too old.',
    again: 'Ask for another one',
    done: 'Your password is changed, and you are signed out everywhere.',
    mail: {
      subject: 'Your new password for {platform}',
      text: 'Hello {username},\n\nsomebody, probably you, asked for a new password for your account at {platform}. Set it here:\n\n{link}\n\nThe link works once, for 30 minutes. If it was not you, do nothing: your password stays as it is.\n',
    },
  },

  consent: {
    title: 'Allow {app}?',
    heading: 'Allow {app} to use your account?',
    again: '{app} asks again',
    website: 'Website',
    privacy: 'Privacy policy',
    notYou: 'Not you?',
    nativeAsk: 'Did you open this app just now?',
    nativeWhy: 'Any app on your device can call itself {app}. If you did not start this, choose “{deny}”.',
    legend: 'It would be able to',
    changes: 'Can change data',
    required: '(always part of signing in)',
    untick: 'Untick what you do not want to share.',
    lastsWeb:
      'This lasts {days} days after each sign-in to the app. You can revoke it at any time under “Connected apps” in your account.',
    lastsNative:
      'This lasts for as long as you use the app, {days} days at most, and ends when you do not use it for {idle} days. You can revoke it at any time under “Connected apps” in your account.',
    deny: 'Deny',
    allow: 'Allow',
    back: 'Either way you go back to {place}.',
  },

  apps: {
    none: 'No app can see your account.',
    noneWhy: 'An app appears here when you sign in to it and allow it something.',
    lead: 'These apps can use your account without asking you each time. Revoke what you no longer use: its access ends at once.',
    can: 'It can',
    since: 'Since',
    lastUsed: 'Last used',
    notSeen: 'Not seen yet',
    revoke: 'Revoke access',
    revokeOf: 'of {app}',
    more: 'And {count} more: they appear here as you revoke others.',
    within: 'Use shows here within a minute.',
  },

  sessions: {
    lead: 'Where you are signed in. If you do not know one of these, sign it out, and tell the platform: somebody may know your password.',
    current: 'This browser',
    unknownBrowser: 'Unknown browser',
    browserOn: '{browser} on {system}',
    signedIn: 'Signed in',
    lastSeen: 'Last seen',
    end: 'Sign out',
    endCurrent: 'of this browser',
    endOf: 'of {browser}, last seen {when}',
    endOthers: 'Sign out of all others',
    more: 'And {count} more, seen longer ago: “{endOthers}” ends them, too.',
    appsStay: 'Signing out ends a browser’s session. Connected apps keep their access until you revoke it.',
  },

  security: {
    titleRefused: 'Error: Security',
    lead: 'How you sign in.',
    confirmWhy: 'To change something here, you must have signed in within the last five minutes.',
    confirm: 'Confirm that it is you',
    passkeys: 'Your passkeys',
    passkeysWhy:
      'Sign in with your fingerprint, face or screen lock. A passkey cannot be guessed, and works on no other site.',
    synced: 'Synced',
    oneDevice: 'On one device',
    added: 'Added',
    lastUsed: 'Last used',
    notUsed: 'Not yet',
    remove: 'Remove',
    removeOf: 'the passkey {name}',
    onlyWay: 'Your only way to sign in: it cannot be removed.',
    full: 'You have as many passkeys as there can be. Remove one to add another.',
    name: 'Name of the new passkey',
    suggested: 'Passkey',
    add: 'Add a passkey',
    noPasskeys: 'Passkeys need JavaScript, and a browser that has them.',
    failed: 'That did not work. Try again.',
    cancelled: 'No passkey was made. Try again.',
    known: 'This device has a passkey for your account already.',
    password: 'Password',
    passwordOn: 'You can sign in with your password.',
    passwordOff: 'Your password is switched off: nobody can sign in with it.',
    currentPassword: 'Current password',
    newPassword: 'New password',
    rules: 'At least 10 characters, of any kind. A few words that belong together nowhere else are good.',
    endOthers: 'Sign out of all other browsers',
    changePassword: 'Change the password',
    switchOff: 'Switch the password off',
    switchOn: 'Switch the password on',
    trail: 'Changes here stand under “Activity”.',
    faults: {
      notAdded: 'The passkey was not added. Try again.',
      notRemoved: 'The passkey was not removed: it is gone already, or your only way to sign in.',
      wrongPassword: 'The current password is not right.',
      throttled: 'Too many attempts. Try again in {wait}.',
      length: 'The new password must have 10 to 128 characters.',
      characters: 'The new password has characters that cannot be used.',
      common: 'The new password is one of the commonest, and guessed first. Choose another.',
      username: 'The new password must not be your username.',
      same: 'The new password is the one that you have.',
      notChanged: 'The password was not changed: it is switched off, or there is none.',
      notSwitched:
        'The password was not switched: it would leave you no way to sign in, or it was so already.',
    },
  },

  activity: {
    lead: 'Which app or key used your data in the last 90 days, by day and by what it used. Requests that were refused are not counted.',
    none: 'Nobody used your data in the last 90 days.',
    noneWhy: 'Requests of apps and keys that act for you appear here.',
    chart: 'Requests a day over the last 90 days: {total} in all, {most} at most on one day',
    day: 'Day',
    app: 'App or key',
    what: 'What it used',
    requests: 'Requests',
    last: 'Last',
    key: '(key)',
    gone: 'Removed app',
    access: 'Sign-ins and access',
    noAccess: 'Nothing in the last 90 days.',
    within: 'Days are those of UTC. Use shows here within a minute.',
    events: {
      'sign_in.succeeded': 'You signed in',
      'passkey.added': 'You added a passkey',
      'passkey.removed': 'A passkey of yours was removed',
      'user.password_set': 'Your password was changed',
      'user.password_switched': 'Your password was switched off or on',
      'consent.granted': 'You allowed {app} to use your account',
      'access.revoked': 'Access was ended: {app}',
      'key.created': 'A key to your data was issued: {app}',
      'key.revoked': 'A key to your data was revoked: {app}',
      'calendar_link.created': 'You made a calendar link',
      'calendar_link.revoked': 'You revoked a calendar link',
      'user.exported': 'You downloaded your data',
    },
  },

  keys: {
    none: 'No key acts for you.',
    noneWhy: 'A key appears here when the platform issues one for your data.',
    lead: 'Programs use these keys to act for you, without you being there. The platform issued them. Revoke one that should not: it ends at once, and for good.',
    can: 'It can',
    nothing: 'Nothing but look itself up.',
    since: 'Issued',
    ends: 'Ends',
    never: 'Never',
    revoke: 'Revoke key',
    more: 'And {count} more: they appear here as you revoke others.',
  },

  calendar: {
    titleRefused: 'Error: Calendar',
    lead: 'Make a link, and add it to your calendar program as a subscription: it shows your events there and keeps them up to date. Whoever has the link can read your events, so give each program its own, and nobody else any.',
    name: 'Where you will use it, such as “Phone”',
    create: 'Create link',
    made: 'The link “{name}” is ready.',
    once: 'Copy it now: it is shown this once. To use it elsewhere, make another.',
    link: 'Your calendar link',
    created: 'Made',
    revoke: 'Revoke',
    limit: 'You have {most} links, as many as there can be: revoke one first.',
    badName: 'Give the link a name of at most {longest} characters.',
    stays:
      'A link works until you revoke it, also when you sign out. It ends when all your sign-ins are ended, as with a new password. It shows your next 1,000 events, and the latest 500 of the last year. Use shows here within a minute.',
  },

  data: {
    lead: 'Everything that is held about you here, as one file (JSON) that you can keep or give to another program:',
    parts: [
      'your profile',
      'your events, each with your answer',
      'your connections, and those not accepted yet',
      'achievements, with your progress',
      'connected apps, keys and calendar links, without their secrets',
      'where you are signed in',
      'who used what of your data, by day',
      'sign-ins and changes of your account, as they were recorded',
    ],
    download: 'Download',
    careful: 'It may take a moment. Keep the file where nobody else can read it.',
  },

  /** What an action has done, said on the page that follows it. */
  done: {
    'access-revoked': 'The app has no access to your account any more.',
    'session-ended': 'That session is signed out.',
    'others-ended': 'All other sessions are signed out.',
    'key-revoked': 'That key does not work any more.',
    'calendar-link-revoked': 'That calendar link does not work any more.',
    'passkey-added': 'You can sign in with your new passkey.',
    'passkey-removed': 'The passkey is removed. Delete it on your device, too.',
    'password-changed':
      'Your password is changed. Other sessions that were signed out: {count}. Connected apps keep their access.',
    'password-off': 'Your password is switched off.',
    'password-on': 'You can sign in with your password again.',
  },

  signOutPage: {
    title: 'Sign out',
    heading: 'Sign out?',
    byApp: '{app} asks to sign you out of this browser.',
    plain: 'You will be signed out of this browser.',
    appsStay: 'Connected apps keep their access. You can revoke it under “Connected apps” in your account.',
    stay: 'Stay signed in',
    submit: 'Sign out',
  },

  signedOut: {
    title: 'Signed out',
    heading: 'You are signed out',
    close: 'You can close this page.',
    closeOrBack: 'You can close this page, or go back to {app}.',
    appsStay: 'Connected apps keep their access until you revoke it.',
    toApps: 'See connected apps',
  },

  error: {
    askForHelp: 'ask for help',
    giveId: 'If you {askForHelp}, give this error id:',
    developers: 'For developers',
    notRegistered: 'This was sent, but it is not registered in exactly this form:',
    registered: 'Registered for this app:',
    next: { tryAgain: 'Try again', anotherAccount: 'Use another account' },
  },

  faults: FAULTS as Readonly<Record<FaultName, Fault>>,

  /** What a scope lets an app do. */
  scopes: {
    ...(SCOPES as Readonly<Record<Scope, string>>),
    openid: 'Know who you are: your username, name and picture',
    profile: 'Get your name, username and picture each time you sign in',
    offline_access: 'Stay connected while you are away, until you revoke its access',
  },
};

/** All that members' pages say: a language that lacks one of these does not compile. */
export type Texts = typeof en;
