package apierror

import (
	"fmt"
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
)

// passkeyErrors have the codes of better-auth's passkey plugin.
var passkeyErrors = []mapping{
	{identity.ErrPasskeyNeeded, Error{
		Status: http.StatusForbidden, Code: "SESSION_NOT_FRESH", Message: "You have a passkey, and this session was not confirmed with it within ten minutes. Confirm it with /auth/passkey/verify-authentication, then repeat this.",
		Page: correctable("", "Confirm with your passkey that it is you, then do this within ten minutes."),
	}},
	{identity.ErrSecondFactor, Error{
		Status: http.StatusForbidden, Code: "SECOND_FACTOR_REQUIRED", Message: "The operator requires a passkey for this. Add one with /auth/passkey/generate-register-options; an owner of live keys keeps one.",
		Page: correctable("", "The operator of this service requires a passkey for this. Add one on the page of your account; an owner of live keys keeps one."),
	}},
	{identity.ErrPasskeysOff, Error{
		Status: http.StatusBadRequest, Code: "PASSKEYS_NOT_CONFIGURED", Message: "Browsers know no passkeys at the address of this service; the operator must give it a domain and TLS in CORE_PUBLIC_URL.",
		Page: Page{Title: "Not available", Text: "Browsers know no passkeys at the address of this service."},
	}},
	{identity.ErrChallenge, Error{
		Status: http.StatusBadRequest, Repeated: true, Code: "CHALLENGE_NOT_FOUND", Message: "The challenge was used, has expired or is another browser's; ask for options again.",
	}},
	{identity.ErrRegistration, Error{
		Status: http.StatusBadRequest, Code: "FAILED_TO_VERIFY_REGISTRATION", Message: "The response does not register a passkey for the challenge at this site, with user verification and without attestation; ask for options again.",
	}},
	{identity.ErrRegistrationOfOther, Error{
		Status: http.StatusUnauthorized, Code: "YOU_ARE_NOT_ALLOWED_TO_REGISTER_THIS_PASSKEY", Message: "Another person began this registration; ask for options again.",
	}},
	{identity.ErrAuthentication, Error{
		Status: http.StatusUnauthorized, Code: "AUTHENTICATION_FAILED", Message: "The response does not prove the passkey for the challenge at this site, with user verification; ask for options again.",
	}},
	{identity.ErrUnknownPasskey, Error{
		Status: http.StatusUnauthorized, Code: "PASSKEY_NOT_FOUND", Message: "Nobody signs in with this passkey here; it may have been removed.",
	}},
	{account.ErrNoPasskey, Error{
		Status: http.StatusNotFound, Code: "PASSKEY_NOT_FOUND", Message: "You have no such passkey; see /auth/passkey/list-user-passkeys.",
		Page: Page{Title: "No such passkey", Text: "You have no such passkey. It may have been removed."},
	}},
	{account.ErrPasskeyRegistered, Error{
		Status: http.StatusBadRequest, Repeated: true, Code: "PREVIOUSLY_REGISTERED", Message: "The passkey is registered already; use it, or create another one.",
	}},
	{account.ErrTooManyPasskeys, Error{
		Status: http.StatusBadRequest, Code: "TOO_MANY_PASSKEYS", Message: fmt.Sprintf("You have %d passkeys, and more are not possible; remove one first.", account.MaxPasskeys),
	}},
}
