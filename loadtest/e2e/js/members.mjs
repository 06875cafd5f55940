// The published client of better-auth's organization plugin does what members of an account do. Ends with an error where an answer is not
// what the client's documentation promises.
import assert from 'node:assert/strict'
import { answered, becomes, browser, mailedLink, newcomer, refused, status } from './browser.mjs'

const roleOf = async (client) => (await answered(client.organization.getActiveMember())).role

async function sharesAnAccount() {
  const [ada, bob] = [await newcomer(), await newcomer()]
  const shop = await answered(ada.client.organization.create({ name: 'Shop', slug: 'shop' }))
  assert.deepEqual([shop.name, shop.slug, shop.members.map((m) => [m.userId, m.role])], ['Shop', shop.id, [[ada.user.id, 'owner']]])
  assert.equal((await answered(ada.client.getSession())).session.activeOrganizationId, shop.id)
  assert.deepEqual((await answered(ada.client.organization.list())).map((o) => o.id), [ada.user.id, shop.id])
  const { key } = await answered(ada.client.apiKey.create({ name: 'of the shop' }))

  const invited = await answered(ada.client.organization.inviteMember({ email: bob.email, role: 'viewer' }))
  assert.deepEqual([invited.status, invited.email, invited.role, invited.link], ['pending', bob.email, 'viewer', null])
  await refused(ada.client.organization.inviteMember({ email: bob.email, role: 'viewer' }), 400, 'USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION')
  assert.deepEqual((await answered(ada.client.organization.listInvitations())).map((i) => i.id), [invited.id])
  const link = await mailedLink(bob.email)
  assert.equal(link.origin + link.pathname, process.env.PUBLIC_URL + '/console/invitation')
  const invitationId = link.searchParams.get('token')
  const eve = await newcomer()
  await refused(eve.client.organization.acceptInvitation({ invitationId }), 403, 'YOU_ARE_NOT_THE_RECIPIENT_OF_THE_INVITATION')
  await refused(bob.client.organization.acceptInvitation({ invitationId: invited.id }), 400, 'INVITATION_NOT_FOUND')
  const received = await answered(bob.client.organization.getInvitation({ query: { id: invitationId } }))
  assert.deepEqual([received.organizationName, received.inviterEmail, received.role], ['Shop', ada.email, 'viewer'])
  const { invitation, member } = await answered(bob.client.organization.acceptInvitation({ invitationId }))
  assert.deepEqual([invitation.status, member.userId, member.role], ['accepted', bob.user.id, 'viewer'])

  assert.deepEqual((await answered(bob.client.apiKey.list())).apiKeys.map((k) => k.name), ['of the shop'])
  await refused(bob.client.apiKey.create({ name: 'no' }), 403, 'ROLE_NOT_ALLOWED')
  await refused(bob.client.organization.inviteMember({ email: eve.email, role: 'owner' }), 403, 'ROLE_NOT_ALLOWED')
  assert.equal(bob.client.organization.checkRolePermission({ role: 'viewer', permissions: { key: ['change'] } }), false)
  assert.equal(await roleOf(bob.client), 'viewer')
  assert.equal((await answered(ada.client.organization.updateMemberRole({ memberId: member.id, role: 'developer' }))).role, 'developer')
  assert.equal(await roleOf(bob.client), 'developer')
  const second = await answered(bob.client.apiKey.create({ name: 'of bob' }))
  const full = await answered(bob.client.organization.getFullOrganization())
  assert.deepEqual(full.members.map((m) => [m.user.email, m.role]), [[ada.email, 'owner'], [bob.email, 'developer']])
  assert.equal((await answered(bob.client.organization.listMembers({ query: { organizationId: shop.id } }))).total, 2)

  assert.equal(await answered(bob.client.organization.setActive({ organizationId: null })), null)
  assert.deepEqual((await answered(bob.client.apiKey.list())).apiKeys, [])
  assert.equal((await answered(bob.client.organization.setActive({ organizationId: shop.id }))).id, shop.id)
  assert.equal((await answered(bob.client.organization.getActiveMember())).userId, bob.user.id)
  assert.equal((await answered(ada.client.organization.removeMember({ memberIdOrEmail: bob.email }))).member.userId, bob.user.id)
  assert.equal(await answered(bob.client.getSession()), null, 'who is removed is signed out of the account')
  assert.deepEqual([await status(key), await status(second.key)], [200, 200], 'the keys stay the account\'s')
  assert.equal((await answered(ada.client.organization.update({ organizationId: shop.id, data: { name: 'Kiosk' } }))).name, 'Kiosk')
  await refused(ada.client.organization.leave({ organizationId: shop.id }), 400, 'YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER')
  assert.equal((await answered(ada.client.organization.delete({ organizationId: shop.id }))).id, shop.id)
  await becomes(key, 403)
  assert.equal((await answered(ada.client.getSession())).session.activeOrganizationId, ada.user.id)
}

async function keepsTheirOwn() {
  const [ada, bob] = [await newcomer(), await newcomer()]
  await answered(ada.client.organization.inviteMember({ email: bob.email, role: 'owner' }))
  const invitationId = (await mailedLink(bob.email)).searchParams.get('token')
  assert.equal((await answered(bob.client.organization.rejectInvitation({ invitationId }))).invitation.status, 'rejected')
  const again = await answered(ada.client.organization.inviteMember({ email: bob.email, role: 'owner' }))
  assert.equal((await answered(ada.client.organization.cancelInvitation({ invitationId: again.id }))).status, 'canceled')
  await refused(ada.client.organization.updateMemberRole({ memberId: ada.user.id, role: 'viewer' }), 403, 'YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_MEMBER')
  await refused(ada.client.organization.getFullOrganization({ query: { organizationId: bob.user.id } }), 403, 'USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION')
  await refused(browser().organization.list(), 401, 'UNAUTHORIZED')
}

for (const step of [sharesAnAccount, keepsTheirOwn]) {
  await step()
  console.log(step.name)
}
