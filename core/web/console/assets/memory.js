// What a wallet was asked for an intent, kept in this browser until the service knows the transaction's hash: {asked: time}, {batch: id} or
// {hash}. Browsers may refuse to keep anything; then nothing is kept.
const keyOf = (intent) => `transfer ${intent}`;

export const memory = {
  read(intent) {
    try {
      return intent ? JSON.parse(localStorage.getItem(keyOf(intent))) : null;
    } catch {
      return null;
    }
  },
  write(intent, value) {
    try {
      if (intent && value) localStorage.setItem(keyOf(intent), JSON.stringify(value));
      else if (intent) localStorage.removeItem(keyOf(intent));
    } catch { /* not kept */ }
  },
};
