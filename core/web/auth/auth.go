// Package auth serves people's sessions: the routes below /auth, in the shapes of better-auth. Who may do what is the business of package
// identity.
package auth

import (
	"log/slog"
	"net/http"
	"slices"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// Config is the configuration of the routes below /auth.
type Config struct {
	Identity   *identity.Service
	Identities *identity.Store
	// Now is the database's clock.
	Now func() time.Time
	// PublicURL is where browsers reach the service, without a path. Over https, cookies are bound to it.
	PublicURL string
	Log       *slog.Logger
}

// Server answers people's requests.
type Server struct {
	Config
	cookie identity.Cookie
	// flowCookie is the cookie of the OpenID Connect sign-ins in progress.
	flowCookie identity.FlowCookie
}

// New returns a server.
func New(config Config) *Server {
	return &Server{
		Config: config, cookie: identity.NewCookie(config.PublicURL), flowCookie: identity.NewFlowCookie(config.PublicURL),
	}
}

// sessionRoute is a path below /auth, which has one method.
type sessionRoute struct {
	method string
	answer route.Endpoint
	need   identity.Need
}

func (s *Server) sessionRoutes() map[string]sessionRoute {
	return map[string]sessionRoute{
		"/auth/sign-up/email":                         {http.MethodPost, s.signUp, identity.Anyone},
		"/auth/sign-in/email":                         {http.MethodPost, s.signIn, identity.Anyone},
		"/auth/sign-out":                              {http.MethodPost, s.signOut, identity.Anyone},
		"/auth/get-session":                           {http.MethodGet, s.getSession, identity.Anyone},
		"/auth/list-sessions":                         {http.MethodGet, s.listSessions, identity.Person},
		"/auth/revoke-session":                        {http.MethodPost, s.revokeSession, identity.Person},
		"/auth/revoke-other-sessions":                 {http.MethodPost, s.revokeOtherSessions, identity.Person},
		"/auth/revoke-sessions":                       {http.MethodPost, s.revokeSessions, identity.Person},
		"/auth/change-password":                       {http.MethodPost, s.changePassword, identity.Person},
		"/auth/request-password-reset":                {http.MethodPost, s.requestPasswordReset, identity.Anyone},
		"/auth/reset-password":                        {http.MethodPost, s.resetPassword, identity.Anyone},
		"/auth/delete-user":                           {http.MethodPost, s.deleteUser, identity.Person},
		"/auth/siwe/nonce":                            {http.MethodPost, s.createNonce, identity.Anyone},
		"/auth/siwe/verify":                           {http.MethodPost, s.verifySIWE, identity.Anyone},
		"/auth/sign-in/oauth2":                        {http.MethodPost, s.startOIDC, identity.Anyone},
		identity.OIDCCallbackPath:                     {http.MethodGet, s.finishOIDC, identity.Anyone},
		"/auth/list-accounts":                         {http.MethodGet, s.listAccounts, identity.Person},
		"/auth/oauth2/link":                           {http.MethodPost, s.linkOIDC, identity.Person},
		"/auth/siwe/link":                             {http.MethodPost, s.linkSIWE, identity.Person},
		"/auth/unlink-account":                        {http.MethodPost, s.unlinkAccount, identity.Person},
		"/auth/passkey/generate-register-options":     {http.MethodGet, s.generateRegisterOptions, identity.Person},
		"/auth/passkey/verify-registration":           {http.MethodPost, s.verifyRegistration, identity.Person},
		"/auth/passkey/generate-authenticate-options": {http.MethodGet, s.generateAuthenticateOptions, identity.Anyone},
		"/auth/passkey/verify-authentication":         {http.MethodPost, s.verifyAuthentication, identity.Anyone},
		"/auth/passkey/list-user-passkeys":            {http.MethodGet, s.listPasskeys, identity.Person},
		"/auth/passkey/update-passkey":                {http.MethodPost, s.updatePasskey, identity.Person},
		"/auth/passkey/delete-passkey":                {http.MethodPost, s.deletePasskey, identity.Person},
		"/auth/send-verification-email":               {http.MethodPost, s.sendVerificationEmail, identity.Anyone},
		"/auth/verify-email":                          {http.MethodGet, s.verifyEmail, identity.Anyone},
		"/auth/change-email":                          {http.MethodPost, s.changeEmail, identity.Person},
		"/auth/api-key/create":                        {http.MethodPost, s.createKey, identity.Develop},
		"/auth/api-key/list":                          {http.MethodGet, s.listKeys, identity.Read},
		"/auth/api-key/get":                           {http.MethodGet, s.getKey, identity.Read},
		"/auth/api-key/update":                        {http.MethodPost, s.updateKey, identity.Develop},
		"/auth/api-key/rotate":                        {http.MethodPost, s.rotateKey, identity.Develop},
		"/auth/api-key/delete":                        {http.MethodPost, s.deleteKey, identity.Develop},

		// The required role depends on the account that the request names, so these routes check it themselves, with s.on.
		"/auth/organization/create":                {http.MethodPost, s.createOrganization, identity.Person},
		"/auth/organization/list":                  {http.MethodGet, s.listOrganizations, identity.Person},
		"/auth/organization/set-active":            {http.MethodPost, s.setActiveOrganization, identity.Person},
		"/auth/organization/update":                {http.MethodPost, s.updateOrganization, identity.Person},
		"/auth/organization/delete":                {http.MethodPost, s.deleteOrganization, identity.Person},
		"/auth/organization/get-full-organization": {http.MethodGet, s.getOrganization, identity.Person},
		"/auth/organization/list-members":          {http.MethodGet, s.listMembers, identity.Person},
		"/auth/organization/get-active-member":     {http.MethodGet, s.getActiveMember, identity.Person},
		"/auth/organization/update-member-role":    {http.MethodPost, s.updateMemberRole, identity.Person},
		"/auth/organization/remove-member":         {http.MethodPost, s.removeMember, identity.Person},
		"/auth/organization/leave":                 {http.MethodPost, s.leaveOrganization, identity.Person},
		"/auth/organization/invite-member":         {http.MethodPost, s.inviteMember, identity.Person},
		"/auth/organization/list-invitations":      {http.MethodGet, s.listInvitations, identity.Person},
		"/auth/organization/cancel-invitation":     {http.MethodPost, s.cancelInvitation, identity.Person},
		"/auth/organization/get-invitation":        {http.MethodGet, s.getInvitation, identity.Person},
		"/auth/organization/accept-invitation":     {http.MethodPost, s.acceptInvitation, identity.Person},
		"/auth/organization/reject-invitation":     {http.MethodPost, s.rejectInvitation, identity.Person},
	}
}

// writingGETs are the paths whose GET writes: links in mails and redirects are followed with it, and the options of a registration have the
// user handle that the authenticator keeps for ever.
var writingGETs = []string{"/auth/verify-email", identity.OIDCCallbackPath, "/auth/passkey/generate-register-options"}

// Routes are the routes below /auth.
func (s *Server) Routes() []route.Route {
	var routes []route.Route
	for path, r := range s.sessionRoutes() {
		routes = append(routes, route.Route{
			Pattern: r.method + " " + path, Endpoint: s.require(r.need, r.answer), Writes: slices.Contains(writingGETs, path),
		})
	}
	return routes
}
